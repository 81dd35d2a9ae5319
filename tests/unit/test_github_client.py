"""The client against a GitHub that limits, fails, renames and lies, over HTTP."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from github_double import BASE, PEM, REPO, SECRET, Double, Say, gateway

from bot.github.calls import UnreachableError, UnsureError
from bot.github.gateway import Connection, Gateway
from bot.github.tokens import IssuedToken
from handlers.context import GitHub, RateLimitedError, RefusedError, Repo

SHA = "0123456789" * 4
RUN = {
    "id": 5,
    "name": None,
    "workflow_id": 1,
    "event": "push",
    "status": "completed",
    "conclusion": "failure",
    "head_sha": SHA,
    "head_branch": "pull-request/42",
    "run_attempt": 2,
    "created_at": "2026-12-01T11:00:00Z",
    "html_url": "https://github.example/runs/5",
    "pull_requests": [
        {"number": 42, "base": {"ref": "main", "sha": SHA, "repo": {"id": REPO.id}}},
        {"number": 3, "base": {"ref": "main", "sha": SHA, "repo": {"id": 1}}},
    ],
}


@pytest.fixture
def repo(made: Gateway) -> GitHub:
    return made.for_repo(REPO)[0]


async def test_a_token_is_narrow_shared_and_renewed_five_minutes_early(github: Double, repo: GitHub) -> None:
    github.always(f"GET {BASE}/actions/runs/5", Say(data=RUN))
    await asyncio.gather(*(repo.run(5) for _ in range(5)))
    github.clock.forward(minutes=54)
    await repo.run(5)
    assert github.tokens_issued == 1
    github.clock.forward(minutes=1)
    await repo.run(5)
    assert github.tokens_issued == 2
    asked = github.requests("POST /app/installations")[0].data
    assert asked["repository_ids"] == [REPO.id]
    assert asked["permissions"]["contents"] == "read"
    assert "administration" not in asked["permissions"]


async def test_a_token_that_github_no_longer_takes_is_renewed_once(github: Double, repo: GitHub) -> None:
    github.on(f"POST {BASE}/actions/runs/5/rerun", Say(401, {"message": "Bad credentials"}), Say(201, {}))
    await repo.rerun(5)
    old, new = (asked.headers["Authorization"] for asked in github.requests(f"POST {BASE}"))
    assert (old, new) == ("token ghs_4711_1.a.b", "token ghs_4711_2.a.b")

    github.always(f"GET {BASE}/actions/runs/5", Say(401, {"message": "Bad credentials"}))
    with pytest.raises(RefusedError, match="Bad credentials"):
        await repo.run(5)
    assert github.tokens_issued == 3


async def test_the_reader_is_told_why_there_is_no_token(github: Double, made: Gateway) -> None:
    github.on("POST /app/installations/8/access_tokens", Say(404, {"message": "Not Found"}))
    elsewhere, *_ = made.for_repo(Repo(id=1, full_name="octo-org/other", installation_id=8))
    with pytest.raises(RefusedError, match=r"octo-org/other \(installation 8\): Not Found") as refused:
        await elsewhere.pull(1)
    assert refused.value.status == 404


async def test_every_request_says_which_api_it_means(github: Double, repo: GitHub) -> None:
    github.on(f"GET {BASE}/actions/runs/5", Say(data=RUN))
    found = await repo.run(5)
    assert (found.name, found.attempt, found.pull_numbers) == ("", 2, (42,))
    for asked in github.asked:
        assert asked.headers["X-GitHub-Api-Version"] == "2022-11-28"
        assert asked.headers["Accept"] == "application/vnd.github+json"


async def test_an_unchanged_answer_is_not_sent_twice_and_cannot_be_poisoned(github: Double, repo: GitHub) -> None:
    path = f"GET {BASE}/pulls/42/files"
    github.on(path, Say(data=[{"filename": "a.py"}], headers={"ETag": '"1"'}), Say(304), Say(304))
    first = await repo.changed_files(42)
    assert [await repo.changed_files(42), await repo.changed_files(42)] == [first, first] == [("a.py",), ("a.py",)]
    assert [asked.headers.get("If-None-Match") for asked in github.requests(path)] == [None, '"1"', '"1"']


async def test_a_listing_is_read_over_its_pages(github: Double, repo: GitHub) -> None:
    def job(number: int) -> dict[str, Any]:
        return {"id": number, "run_id": 5, "name": f"job {number}", "status": "queued", "head_sha": SHA}

    first = f"{BASE}/actions/runs/5/jobs?filter=latest&per_page=100"
    link = f'<{github.url}{first}&page=2>; rel="next", <{github.url}{first}&page=2>; rel="last"'
    github.on(f"GET {first}", Say(data={"total_count": 2, "jobs": [job(1)]}, headers={"Link": link}))
    github.on(f"GET {first}&page=2", Say(502), Say(data={"total_count": 2, "jobs": [job(2)]}))
    github.on(f"GET {first}", Say(data={"total_count": 2, "jobs": [job(1)]}, headers={"Link": link}))
    assert [found.name for found in await repo.jobs(5)] == ["job 1", "job 2"]


async def test_runs_are_asked_for_by_documented_filters(github: Double, repo: GitHub) -> None:
    github.on(f"GET {BASE}/actions/runs?branch=pull-request%2F42&per_page=100", Say(data={"workflow_runs": [RUN]}))
    assert [found.id for found in await repo.runs(branch="pull-request/42")] == [5]
    with pytest.raises(ValueError, match="full commit hash"):
        await repo.runs(head_sha="main")


async def test_a_branch_with_odd_letters_stays_one_path(github: Double, repo: GitHub) -> None:
    found = {"ref": "refs/heads/x", "object": {"sha": SHA}}
    github.on(f"GET {BASE}/git/ref/heads%2Fpull-request%2F42", Say(data=found))
    github.on(f"GET {BASE}/git/ref/heads%2Ffix%23%3F..%20x", Say(404, {"message": "Not Found"}))
    assert await repo.branch_sha("pull-request/42") == SHA
    assert await repo.branch_sha("fix#?.. x") is None


@pytest.mark.parametrize("name", ["../evil/repo", "a/b/c", "a/..", "https://evil.example/x", "a/b?c", "a/b#c", "a"])
def test_a_name_that_is_none_is_refused(made: Gateway, name: str) -> None:
    with pytest.raises(ValueError, match="not a repository name"):
        made.for_repo(Repo(id=1, full_name=name, installation_id=7))


@pytest.mark.parametrize(
    "said",
    [
        Say(403, {"message": "You have exceeded a secondary rate limit."}, headers={"Retry-After": "1"}),
        Say(429, {"message": "slow down"}, headers={"Retry-After": "1"}),
    ],
)
async def test_a_short_wait_is_waited_out_even_by_a_write(github: Double, repo: GitHub, said: Say) -> None:
    github.on(f"POST {BASE}/actions/runs/5/cancel", said, Say(202, {}))
    began = time.monotonic()
    await repo.cancel(5)
    assert time.monotonic() - began >= 1.0
    assert len(github.requests(f"POST {BASE}")) == 2


@pytest.mark.parametrize(
    ("said", "after_s"),
    [
        (Say(429, {"message": "slow down"}, headers={"Retry-After": "90"}), 90),
        (Say(403, {"message": "You have exceeded a secondary rate limit"}), 60),
        (
            Say(
                403,
                {"message": "API rate limit exceeded"},
                headers={
                    "X-RateLimit-Limit": "5000",
                    "X-RateLimit-Remaining": "0",
                    "X-RateLimit-Reset": "1796126700",  # 25 minutes after the test's clock
                },
            ),
            1501,
        ),
    ],
)
async def test_a_long_wait_goes_back_to_the_queue_and_holds_the_others(
    github: Double, repo: GitHub, said: Say, after_s: float
) -> None:
    github.clock.time = github.clock.time.fromtimestamp(1796126700 - 1500, tz=github.clock.time.tzinfo)
    github.on(f"GET {BASE}/actions/runs/5", said)
    for _ in range(2):  # the second is not even sent
        with pytest.raises(RateLimitedError) as limited:
            await repo.run(5)
        assert limited.value.after_s == pytest.approx(after_s, abs=2)
    assert len(github.requests(f"GET {BASE}")) == 1


async def test_a_refusal_carries_githubs_own_words(github: Double, repo: GitHub) -> None:
    github.on(f"POST {BASE}/actions/jobs/8/rerun", Say(403, {"message": "This workflow is already running"}))
    with pytest.raises(RefusedError, match="This workflow is already running") as refused:
        await repo.rerun_job(8)
    assert refused.value.status == 403
    assert len(github.requests(f"POST {BASE}")) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        Say(502),
        Say(520, body=b"<html>"),
        Say(hang_up=True),
        Say(body=b'{"id": 5', headers={"Content-Type": "application/json"}),
    ],
)
async def test_a_read_survives_trouble(github: Double, repo: GitHub, trouble: Say) -> None:
    github.on(f"GET {BASE}/actions/runs/5", trouble, trouble, Say(data=RUN))
    assert (await repo.run(5)).id == 5


async def test_a_github_that_stays_unwell_means_later_not_never(github: Double, repo: GitHub) -> None:
    github.always(f"GET {BASE}/actions/runs/5", Say(503))
    with pytest.raises(UnreachableError) as unreachable:
        await repo.run(5)
    assert unreachable.value.after_s > 0
    assert len(github.requests(f"GET {BASE}")) == 4


@pytest.mark.parametrize("trouble", [Say(502), Say(hang_up=True)])
async def test_a_write_of_unknown_fate_is_not_repeated(github: Double, repo: GitHub, trouble: Say) -> None:
    github.on(f"POST {BASE}/actions/runs/5/rerun-failed-jobs", trouble)
    with pytest.raises(UnsureError):
        await repo.rerun_failed(5)
    assert len(github.requests(f"POST {BASE}")) == 1


async def test_a_github_that_falls_silent_is_not_waited_for_for_ever(github: Double, tmp_path: Path) -> None:
    github.on(f"POST {BASE}/actions/runs/5/rerun", Say(201, {}, delay_s=0.6))
    async with gateway(github, tmp_path, answer_within_s=0.2) as impatient:
        with pytest.raises(UnsureError):
            await impatient.for_repo(REPO)[0].rerun(5)


async def test_nothing_that_we_print_shows_the_key_or_a_token(github: Double) -> None:
    issued = IssuedToken(token="ghs_secret", expires_at=github.clock())
    connection = Connection("https://api.github.example", 1, PEM, (SECRET,))
    printed = f"{issued!r} {issued} {connection!r} {connection}"
    assert not any(secret in printed for secret in ("ghs_secret", SECRET, PEM.splitlines()[1]))


async def test_writes_of_an_installation_are_kept_apart(github: Double, tmp_path: Path) -> None:
    github.always(f"POST {BASE}/actions/runs/5/cancel", Say(202, {}))
    async with gateway(github, tmp_path, write_pause_s=0.2) as paced:
        began = time.monotonic()
        await asyncio.gather(*(paced.for_repo(REPO)[0].cancel(5) for _ in range(3)))
        assert time.monotonic() - began >= 0.4


async def test_a_renamed_repository_is_followed_but_never_to_another_host(github: Double, repo: GitHub) -> None:
    github.on(f"GET {BASE}/actions/runs/5", Say(301, headers={"Location": "/repositories/99/actions/runs/5"}))
    github.on("GET /repositories/99/actions/runs/5", Say(data=RUN))
    assert (await repo.run(5)).id == 5
    github.on(f"POST {BASE}/actions/runs/5/cancel", Say(307, headers={"Location": "/repositories/99/cancel"}))
    github.on("POST /repositories/99/cancel", Say(202, {}))
    await repo.cancel(5)
    github.on(f"GET {BASE}/actions/runs/6", Say(301, headers={"Location": "http://169.254.169.254/latest"}))
    with pytest.raises(RefusedError, match="away from its own host"):
        await repo.run(6)


async def test_a_redirect_where_none_belongs_is_a_refusal(github: Double, repo: GitHub) -> None:
    github.on(f"GET {BASE}/contents/.github%2Fmlm.yml", Say(302, headers={"Location": f"{github.url}/elsewhere"}))
    with pytest.raises(RefusedError, match="unexpected redirect"):
        await repo.file(".github/mlm.yml")


async def test_an_enterprise_server_has_its_api_below_a_path(github: Double, tmp_path: Path) -> None:
    github.always("GET /api/v3/app", Say(data={"id": 4711, "slug": "mlm-bot"}))
    github.always("POST /api/v3/app/installations/7/access_tokens", github.issue_token)
    github.on(f"GET /api/v3{BASE}/actions/runs/5", Say(data=RUN))
    async with gateway(github, tmp_path, prefix="/api/v3") as server:
        assert (await server.for_repo(REPO)[0].run(5)).id == 5


async def test_roles_files_and_commits(github: Double, repo: GitHub) -> None:
    role = f"GET {BASE}/collaborators/octocat/permission"
    github.on(role, Say(data={"permission": "write", "role_name": "maintain"}), Say(404, {"message": "Not Found"}))
    assert [await repo.role("octocat"), await repo.role("octocat")] == ["maintain", "none"]
    config = f"GET {BASE}/contents/.github%2Fmlm.yml"
    encoded = {"type": "file", "encoding": "base64", "content": "YTog\nMQo=\n"}
    github.on(config, Say(data=encoded), Say(404, {"message": "Not Found"}), Say(data=[encoded]))
    assert [await repo.file(".github/mlm.yml") for _ in range(3)] == [b"a: 1\n", None, None]
    github.on(f"GET {BASE}/git/commits/{SHA}", Say(data={"sha": SHA, "parents": [{"sha": "a"}, {"sha": "b"}]}))
    assert await repo.commit_parents(SHA) == ("a", "b")
    unknown = Say(422, {"message": f"No commit found for SHA: {SHA}"})
    github.on(f"GET {BASE}/commits/{SHA}/pulls", unknown)
    assert await repo.pulls_of_commit(SHA) == ()


async def test_only_our_own_reaction_is_taken_back(github: Double, repo: GitHub) -> None:
    reactions = f"{BASE}/issues/comments/3/reactions"
    listed = [
        {"id": 1, "content": "+1", "user": {"id": 1, "login": "octocat", "type": "User"}},
        {"id": 2, "content": "+1", "user": {"id": 2, "login": "mlm-bot[bot]", "type": "Bot"}},
        {"id": 3, "content": "+1", "user": None},
    ]
    github.on(f"POST {reactions}", Say(200, listed[1]))
    github.on(f"GET {reactions}?content=%2B1&per_page=100", Say(data=listed))
    github.on(f"DELETE {reactions}/2", Say(204))
    await repo.react(3, "+1")
    await repo.unreact(3, "+1")
    assert github.requests("POST")[-1].data == {"content": "+1"}
