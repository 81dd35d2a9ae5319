"""The simulated GitHub refuses what GitHub refuses, in GitHub's words."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import aiohttp
import jwt
import pytest
from demo_client import REPO, Client

from bot.demo.state import Pull

MODELS = "tests/unit_tests/models/**/*.py - latest"


@pytest.mark.parametrize(
    ("ahead_s", "key_of_us", "status"), [(540, True, 200), (-5, True, 401), (3600, True, 401), (540, False, 401)]
)
async def test_a_jwt_must_be_ours_and_short_lived(client: Client, ahead_s: int, key_of_us: bool, status: int) -> None:
    now = int(time.time())
    claims = {"iat": now - 60, "exp": now + ahead_s, "iss": str(client.github.app_id)}
    key = client.github.private_key_pem if key_of_us else "a secret of somebody else, not even a key"
    client.app_jwt = lambda: jwt.encode(claims, key, algorithm="RS256" if key_of_us else "HS256")  # type: ignore[method-assign]
    assert (await client.ask("GET", "/app", app=True))[0] == status


async def test_an_expired_token_answers_401(client: Client) -> None:
    client.github.advance_clock(timedelta(hours=1, seconds=1))
    status, body = await client.ask("GET", REPO)
    assert (status, body["message"]) == (401, "Bad credentials")


async def test_a_token_is_only_good_for_its_permissions_and_repositories(client: Client, pull: Pull) -> None:
    other = client.github.add_repo("NVIDIA/other")
    await client.renew_token(permissions={"issues": "read"}, repository_ids=[client.github.repo.id])
    status, body = await client.ask("POST", f"{REPO}/issues/{pull.number}/comments", json={"body": "hello"})
    assert (status, body["message"]) == (403, "Resource not accessible by integration")
    assert (await client.ask("GET", f"{REPO}/issues/{pull.number}/comments"))[0] == 200
    assert (await client.ask("GET", f"/repos/{other.full_name}"))[0] == 404


async def test_a_token_cannot_be_asked_to_do_more_than_the_app_may(client: Client) -> None:
    path = f"/app/installations/{client.github.installation('NVIDIA').id}/access_tokens"
    assert (await client.ask("POST", path, app=True, json={"permissions": {"contents": "write"}}))[0] == 422
    assert (await client.ask("POST", path, app=True, json={"repository_ids": [1]}))[0] == 422


async def test_nothing_is_re_run_while_the_run_is_in_progress(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    path = f"{REPO}/actions/runs/{run.id}"
    for action in ("rerun", "rerun-failed-jobs"):
        status, body = await client.ask("POST", f"{path}/{action}")
        assert (status, body["message"]) == (403, "This workflow is already running")
    status, body = await client.ask("POST", f"{REPO}/actions/jobs/{run.jobs[0].id}/rerun")
    assert (status, body["message"]) == (403, "The workflow run containing this job is already running")


async def test_an_old_run_is_not_re_run(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull, created_at=datetime.now(UTC) - timedelta(days=31))
    await client.github.finish_run(run)
    status, body = await client.ask("POST", f"{REPO}/actions/runs/{run.id}/rerun")
    assert (status, "created over a month ago" in body["message"]) == (403, True)


async def test_only_the_newest_attempts_jobs_can_be_re_run(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure")
    await client.github.finish_run(run)
    old = client.github.job(run, MODELS)
    assert (await client.ask("POST", f"{REPO}/actions/jobs/{old.id}/rerun"))[0] == 201
    await client.github.finish_run(run)
    status, body = await client.ask("POST", f"{REPO}/actions/jobs/{old.id}/rerun")
    assert (status, body["message"]) == (403, "Only jobs from the current attempt can be re-run")


async def test_cancelling_comes_later_and_a_completed_run_cannot_be_cancelled(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    assert (await client.ask("POST", f"{REPO}/actions/runs/{run.id}/cancel"))[0] == 202
    assert run.status == "in_progress"
    await client.github.until(lambda: run.conclusion == "cancelled")
    assert (await client.ask("POST", f"{REPO}/actions/runs/{run.id}/cancel"))[0] == 409


@pytest.mark.parametrize(("body", "status"), [("x" * 65_536, 201), ("x" * 65_537, 422), ("  ", 422), (None, 422)])
async def test_a_comment_has_a_text_of_at_most_65536_characters(
    client: Client, pull: Pull, body: str | None, status: int
) -> None:
    assert (await client.ask("POST", f"{REPO}/issues/{pull.number}/comments", json={"body": body}))[0] == status


async def test_a_locked_pull_request_takes_no_comment(client: Client, pull: Pull) -> None:
    pull.locked = True
    assert (await client.ask("POST", f"{REPO}/issues/{pull.number}/comments", json={"body": "hello"}))[0] == 403


async def test_an_app_edits_only_its_own_comments(client: Client, pull: Pull) -> None:
    theirs = await client.github.comment(pull, "ada", "mine")
    path = f"{REPO}/issues/comments/{theirs.id}"
    assert (await client.ask("PATCH", path, json={"body": "no"}))[0] == 403
    assert (await client.ask("DELETE", path))[0] == 403
    assert theirs.body == "mine"


async def test_a_reaction_is_added_once(client: Client, pull: Pull) -> None:
    comment = await client.github.comment(pull, "ada", "hello")
    path = f"{REPO}/issues/comments/{comment.id}/reactions"
    first, _ = await client.ask("POST", path, json={"content": "eyes"})
    again, reaction = await client.ask("POST", path, json={"content": "eyes"})
    assert (first, again, client.github.reactions(comment)) == (201, 200, ["eyes"])
    assert (await client.ask("DELETE", f"{path}/{reaction['id']}"))[0] == 204
    assert client.github.reactions(comment) == []


async def test_roles_are_exact_and_an_outsider_may_read(client: Client) -> None:
    client.github.add_user("mia", "maintain")
    client.github.add_user("eve", "none")
    for login, legacy, exact in [("mia", "write", "maintain"), ("eve", "read", "read")]:
        _, body = await client.ask("GET", f"{REPO}/collaborators/{login}/permission")
        assert (body["permission"], body["role_name"]) == (legacy, exact)
    assert (await client.ask("GET", f"{REPO}/collaborators/nobody/permission"))[0] == 404


@pytest.mark.parametrize("ref", ["heads/pull-request/1", "heads%2Fpull-request%2F1"])
async def test_a_ref_is_found_whether_its_slashes_are_encoded_or_not(client: Client, pull: Pull, ref: str) -> None:
    _, body = await client.ask("GET", f"{REPO}/git/ref/{ref}")
    assert body["object"]["sha"] == pull.head_sha


async def test_the_settings_file_is_read_from_the_default_branch_only(client: Client, pull: Pull) -> None:
    client.github.repo.files[".github/mlm.yml"] = b"version: 1\n"
    path = f"{REPO}/contents/.github/mlm.yml"
    assert (await client.ask("GET", path))[0] == 200
    assert (await client.ask("GET", f"{path}?ref={pull.head_sha}"))[0] == 404


async def test_pages_are_linked_and_hold_a_hundred_at_most(client: Client, pull: Pull) -> None:
    for index in range(103):
        client.github.talk.add_comment(client.github.repo, pull, pull.author, f"comment {index}")
    url = f"{client.github.api_url}{REPO}/issues/{pull.number}/comments"
    headers = {"Authorization": f"Bearer {client.token}"}
    async with client.session.get(f"{url}?per_page=500", headers=headers) as answer:
        assert (len(await answer.json()), 'rel="next"' in answer.headers["Link"]) == (100, True)
    async with client.session.get(f"{url}?per_page=100&page=2", headers=headers) as answer:
        assert (len(await answer.json()), 'rel="next"' in answer.headers["Link"]) == (3, False)


async def test_an_answer_that_the_caller_has_costs_nothing(client: Client) -> None:
    headers = {"Authorization": f"Bearer {client.token}"}
    async with client.session.get(client.github.api_url + REPO, headers=headers) as first:
        tag, left = first.headers["ETag"], first.headers["x-ratelimit-remaining"]
    async with client.session.get(client.github.api_url + REPO, headers=headers | {"If-None-Match": tag}) as again:
        assert (again.status, again.headers["x-ratelimit-remaining"]) == (304, left)


async def test_limits_answer_as_on_github(client: Client) -> None:
    client.github.limit_next("GET", "/repos/", retry_after_s=7)
    headers = {"Authorization": f"Bearer {client.token}"}
    async with client.session.get(client.github.api_url + REPO, headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (403, "7")
    client.github.use_up_rate_limit(resets_in_s=100)
    async with client.session.get(client.github.api_url + REPO, headers=headers) as answer:
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (403, "0")


async def test_a_connection_is_cut_before_or_after_the_work(client: Client) -> None:
    headers = {"Authorization": f"Bearer {client.token}"}
    for kind, error in (("reset", aiohttp.ClientConnectionError), ("truncate", aiohttp.ClientPayloadError)):
        client.github.parts.traffic.faults.clear()
        client.github.fail_next("GET", "/repos/", kind, times=2)  # aiohttp tries a cut GET once more by itself
        with pytest.raises(error):
            async with client.session.get(client.github.api_url + REPO, headers=headers) as answer:
                await answer.read()
    client.github.parts.traffic.faults.clear()
    assert (await client.ask("GET", REPO))[0] == 200


async def test_a_lost_answer_was_carried_out(client: Client, pull: Pull) -> None:
    client.github.fail_next("POST", "/comments$", "lost_answer", status=502)
    url = f"{client.github.api_url}{REPO}/issues/{pull.number}/comments"
    headers = {"Authorization": f"Bearer {client.token}"}
    async with client.session.post(url, json={"body": "hello"}, headers=headers) as answer:
        assert answer.status == 502
    assert [comment.body for comment in client.github.comments(pull)] == ["hello"]
