"""How runs move in the simulated GitHub: needs, consequences, attempts, labels, artifacts, concurrency."""

from __future__ import annotations

import zipfile
from datetime import timedelta
from io import BytesIO

import aiohttp
import pytest
from demo_client import REPO, Client

from bot.demo.ci_plan import CONFIGURE, COVERAGE, FINAL, UNEXPANDED, plan_for
from bot.demo.job_log import artifact_name
from bot.demo.state import Pull

MODELS = "tests/unit_tests/models/**/*.py - latest"


@pytest.mark.parametrize(
    ("labels", "scope", "n_repeat", "lightweight", "lts"),
    [
        ((), "L0", 5, False, False),
        (("Run tests",), "L1", 1, True, False),
        (("Run functional tests",), "L1", 5, False, False),
        (("Run functional tests", "Run tests"), "L1", 1, True, False),
        (("container::lts",), "L0", 5, False, True),
    ],
)
def test_labels_make_the_plan(labels: tuple[str, ...], scope: str, n_repeat: int, lightweight: bool, lts: bool) -> None:
    plan = plan_for(labels)
    assert (plan.scope, plan.n_repeat, plan.lightweight, plan.lts) == (scope, n_repeat, lightweight, lts)


async def test_a_unit_failure_skips_the_functional_tests_and_fails_the_gates(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure")
    await client.github.finish_run(run)
    ends = {job.name: job.conclusion for job in run.jobs}
    assert {name for name, end in ends.items() if end == "failure"} == {MODELS, FINAL, COVERAGE}
    assert [name for name, end in ends.items() if end == "skipped"][-1] == UNEXPANDED
    assert run.conclusion == "failure"


async def test_only_an_attempt_that_runs_configure_reads_labels(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure")
    await client.github.finish_run(run)
    await client.github.label(pull, "Run tests")
    await client.github.rerun(run, by="ada", failed_only=True)
    await client.github.finish_run(run)
    assert run.attempt.plan == plan_for(())
    await client.github.rerun(run, by="ada")
    await client.github.finish_run(run)
    assert run.attempt.plan == plan_for(["Run tests"])
    assert any(job.name.startswith("bert/") for job in run.jobs)


async def test_a_label_that_comes_after_configure_started_is_too_late(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull, through=None)
    await client.github.start_job(run, CONFIGURE)
    await client.github.label(pull, "Run tests")
    await client.github.finish_job(run, CONFIGURE)
    assert run.attempt.plan == plan_for(())


async def test_configure_prints_the_merge_commit_of_now(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull, through=None)
    await client.github.push(pull, mirror=False)  # nobody vetted this commit
    await client.github.finish_job(run, CONFIGURE)
    log = client.github.job(run, CONFIGURE).log or b""
    assert f"sha={pull.merge_commit_sha}".encode() in log
    assert client.github.repo.commits[pull.merge_commit_sha].parents[1] != run.head_sha


async def test_a_partial_re_run_copies_the_rest_under_new_ids(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure", artifact={"0/stderr.log": "boom"})
    await client.github.finish_run(run)
    before = {job.name: job.id for job in run.jobs}
    await client.github.rerun_job(run, MODELS, by="ada")
    await client.github.finish_run(run)
    after = {job.name: job for job in run.jobs}
    assert (run.attempt_number, run.conclusion) == (2, "success")
    assert not {job.id for job in after.values()} & set(before.values())
    assert after["linting"].started_at == client.github.repo.jobs[before["linting"]].started_at
    assert len(client.github.artifacts(run)) == 1  # still there after a partial re-run


async def test_artifacts_vanish_when_everything_is_re_run(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure", artifact={"0/stderr.log": "boom"})
    await client.github.finish_run(run)
    await client.github.rerun(run, by="ada")
    assert client.github.artifacts(run) == []


async def test_a_new_run_of_the_branch_cancels_the_one_in_progress(client: Client, pull: Pull) -> None:
    first = await client.github.start_run(pull)
    await client.github.push(pull)
    second = await client.github.start_run(pull)
    assert (first.conclusion, second.status) == ("cancelled", "in_progress")


async def test_a_run_names_its_pull_request_only_on_a_branch_of_the_repository(client: Client, pull: Pull) -> None:
    own = await client.github.open_pull(author="ada", fork=False, mirror=False)
    run = await client.github.start_run(own, branch=own.head_ref)
    _, body = await client.ask("GET", f"{REPO}/actions/runs/{run.id}")
    assert [found["number"] for found in body["pull_requests"]] == [own.number]
    mirrored = await client.github.start_run(pull)
    _, body = await client.ask("GET", f"{REPO}/actions/runs/{mirrored.id}")
    assert body["pull_requests"] == []


def test_an_artifacts_name_holds_neither_job_nor_attempt() -> None:
    assert artifact_name(MODELS, 7).startswith("logs-tests-unit_tests-models-----.py-7-")
    assert artifact_name("gpt/gpt3_tp2 - latest", 7).startswith("logs-gpt3_tp2-7-")


async def _location(client: Client, path: str) -> str:
    headers = {"Authorization": f"token {client.token}"}
    async with client.session.get(client.github.api_url + path, headers=headers, allow_redirects=False) as answer:
        assert answer.status == 302
        return answer.headers["Location"]


async def test_downloads_come_from_another_origin_without_our_token(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure", artifact={"0/stderr.log": "boom"})
    artifact = client.github.artifacts(run)[0]
    url = await _location(client, f"{REPO}/actions/artifacts/{artifact.id}/zip")
    assert not url.startswith(client.github.api_url)
    async with aiohttp.ClientSession() as bare:
        async with bare.get(url) as answer:
            assert zipfile.ZipFile(BytesIO(await answer.read())).read("0/stderr.log") == b"boom"
        async with bare.get(url, headers={"Range": "bytes=2-5"}) as answer:
            assert (answer.status, await answer.read()) == (206, artifact.data[2:6])
        async with bare.get(url, headers={"Authorization": f"token {client.token}"}) as answer:
            assert (answer.status, answer.headers["x-ms-error-code"]) == (400, "InvalidAuthenticationInfo")
        async with bare.get(url.replace("sig=", "sig=0")) as answer:
            assert answer.status == 403
        client.github.advance_clock(timedelta(seconds=62))
        async with bare.get(url) as answer:
            assert answer.status == 403


async def test_an_expired_artifact_is_gone_and_an_unwritten_log_not_found(client: Client, pull: Pull) -> None:
    run = await client.github.start_run(pull)
    await client.github.finish_job(run, MODELS, "failure", artifact=b"no zip at all")
    artifact = client.github.artifacts(run)[0]
    artifact.expired = True
    assert (await client.ask("GET", f"{REPO}/actions/artifacts/{artifact.id}/zip"))[0] == 410
    client.github.job(run, MODELS).log = None
    assert (await client.ask("GET", f"{REPO}/actions/jobs/{client.github.job(run, MODELS).id}/logs"))[0] == 404


async def test_a_failed_delivery_waits_for_somebody_to_redeliver_it(client: Client) -> None:
    url = client.github.app.webhook_url
    client.github.set_webhook_url(None)
    await client.github.open_pull()
    client.github.set_webhook_url(url)
    _, failed = await client.ask("GET", "/app/hook/deliveries?status=failure", app=True)
    assert ([item["event"] for item in failed], client.told) == (["pull_request"], [])
    await client.ask("POST", f"/app/hook/deliveries/{failed[0]['id']}/attempts", app=True)
    await client.github.settle()
    assert [event for event, _, _ in client.told] == ["pull_request"]
    assert client.github.deliveries[-1].guid == failed[0]["guid"]
