"""Everything that handlers may ask of GitHub, asked of the simulated one: every request is one that it documents."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import aiohttp
import pytest

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull as SimulatedPull
from bot.github.gateway import Connection, Gateway, Limits
from handlers.check_view import Annotation, Checks, CheckView
from handlers.context import Comments, Files, GitHub, RefusedError, Repo

JOB = "tests/unit_tests/models/**/*.py - latest"


@dataclass
class Place:
    """The simulated GitHub, a pull request there, and what a handler sees of its repository."""

    github: SimulatedGitHub
    pull: SimulatedPull
    repo: GitHub
    comments: Comments
    files: Files
    checks: Checks


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with SimulatedGitHub() as github, aiohttp.ClientSession() as session:
        made = github.add_repo()
        github.add_user("ada", "maintain")
        pull = await github.open_pull(author="ada", number=42, labels=["Run tests"], files=["a.py", "b/c.py"])
        gateway = Gateway(
            session,
            Connection(github.api_url, github.app_id, github.private_key_pem, (github.webhook_secret,)),
            data_dir=tmp_path,
            clock=github.state.clock,
            limits=Limits(write_pause_s=0.0, retry_pause_s=0.01, log_pause_s=0.01),
        )
        await gateway.start()
        repo = Repo(made.id, "NVIDIA/Megatron-LM", github.installation("NVIDIA").id)
        yield Place(github, pull, *gateway.for_repo(repo))
        await gateway.close()


async def test_a_pull_request_and_its_commit(place: Place) -> None:
    pull = await place.repo.pull(42)
    assert (pull.number, pull.state, pull.author, pull.labels) == (42, "open", "ada", ("Run tests",))
    assert pull.head_sha == place.pull.head_sha
    assert await place.repo.changed_files(42) == ("a.py", "b/c.py")
    assert len(await place.repo.commit_parents(pull.head_sha)) == 1
    assert await place.repo.pulls_of_commit("0" * 40) == ()
    assert [found.number for found in await place.repo.pulls_of_commit(pull.head_sha)] in ([42], [])


async def test_the_tip_of_a_mirror_branch(place: Place) -> None:
    assert await place.repo.branch_sha("pull-request/42") == place.pull.head_sha
    assert await place.repo.branch_sha("pull-request/43") is None


async def test_a_run_its_jobs_and_its_files(place: Place) -> None:
    run = await place.github.start_run(place.pull)
    await place.github.finish_job(run, JOB, "failure", log="it failed\n", artifact={"1/stderr.log": b"boom"})
    await place.github.finish_run(run)
    seen = await place.repo.run(run.id)
    assert (seen.conclusion, seen.attempt, seen.head_branch) == ("failure", 1, "pull-request/42")
    assert [found.id for found in await place.repo.runs(head_sha=place.pull.head_sha)] == [run.id]
    assert [found.id for found in await place.repo.runs(branch="pull-request/42")] == [run.id]
    jobs = {job.name: job for job in await place.repo.jobs(run.id)}
    assert jobs[JOB] == await place.repo.job(jobs[JOB].id)
    assert jobs[JOB].conclusion == "failure"

    log = await place.files.job_log(jobs[JOB])
    assert "it failed" in await place.files.tail(log)
    artifacts = [found for found in await place.repo.artifacts(run.id) if "models" in found.name]
    fetched = await place.files.artifact(artifacts[0])
    assert fetched.path is not None
    with ZipFile(fetched.path) as archive:
        assert [archive.read(name) for name in archive.namelist()] == [b"boom"]
    storage = [asked for asked in place.github.requests if asked.server == "storage"]
    assert [asked.status for asked in storage] == [200, 200]
    assert not any("authorization" in {name.lower() for name in asked.headers} for asked in storage)


async def test_an_expired_artifact_is_told_with_its_day(place: Place) -> None:
    run = await place.github.start_run(place.pull)
    made = await place.github.upload(run, "logs", b"PK")
    known = (await place.repo.artifacts(run.id))[0]
    made.expired = True
    place.github.requests.clear()
    assert (await place.files.artifact(known)).why.startswith("expired on 20")
    assert (await place.files.artifact((await place.repo.artifacts(run.id))[0])).why.startswith("expired on 20")
    assert [asked.status for asked in place.github.asked("GET", "/zip$")] == [410]


async def test_a_download_survives_a_cut_and_a_url_that_ran_out(place: Place) -> None:
    run = await place.github.start_run(place.pull)
    await place.github.upload(run, "logs", bytes(range(256)) * 4_000)
    artifact = (await place.repo.artifacts(run.id))[0]
    place.github.fail_next("GET", f"{artifact.id}", "truncate")
    fetched = await place.files.artifact(artifact)
    assert fetched.why == ""
    assert fetched.path is not None


async def test_reruns_and_their_refusals(place: Place) -> None:
    run = await place.github.start_run(place.pull)
    with pytest.raises(RefusedError, match="already running"):
        await place.repo.rerun(run.id)
    await place.github.finish_job(run, JOB, "failure")
    await place.github.finish_run(run)
    failed = next(job for job in await place.repo.jobs(run.id) if job.name == JOB)
    await place.repo.rerun_failed(run.id)
    assert (await place.repo.run(run.id)).attempt == 2
    await place.repo.cancel(run.id)
    await place.github.until(lambda: run.status == "completed")
    with pytest.raises(RefusedError, match="current attempt"):
        await place.repo.rerun_job(failed.id)
    now = next(job for job in await place.repo.jobs(run.id) if job.name == JOB)
    await place.repo.rerun_job(now.id)
    assert (await place.repo.run(run.id)).attempt == 3


async def test_roles_reactions_and_files(place: Place) -> None:
    assert [await place.repo.role("ada"), await place.repo.role("mallory-x")][0] == "maintain"
    comment = await place.github.comment(place.pull, "ada", "/mlm help")
    await place.repo.react(comment.id, "eyes")
    await place.repo.react(comment.id, "+1")
    await place.repo.unreact(comment.id, "eyes")
    await place.repo.unreact(comment.id, "rocket")
    assert place.github.reactions(comment) == ["+1"]
    assert await place.repo.file(".github/mlm.yml") is None
    place.github.repo.files[".github/mlm.yml"] = b"version: 1\n"
    assert await place.repo.file(".github/mlm.yml") == b"version: 1\n"


async def test_one_comment_even_when_the_answer_got_lost(place: Place) -> None:
    place.github.fail_next("POST", "/comments$", "lost_answer", status=502)
    await place.comments.upsert(42, key="report", body="red")
    await place.comments.upsert(42, key="report", body="green")
    ours = place.github.comments(place.pull, by_app=True)
    assert [comment.body.split("\n", 1)[1] for comment in ours] == ["green"]


async def test_a_listing_of_many_comments_is_read_to_its_end(place: Place) -> None:
    for number in range(205):
        place.github.talk.add_comment(place.github.repo, place.pull, place.pull.author, f"comment {number}")
    made = await place.comments.upsert(42, key="report", body="red")
    place.github.requests.clear()
    found = await place.comments.find(42, key="report")
    assert found is not None
    assert found.id == made.id
    assert len(place.github.asked("GET", "/comments$")) == 3
    await place.comments.find(42, key="report")
    assert [asked.status for asked in place.github.asked("GET", "/comments$")][3:] == [304, 304, 304]


async def test_tokens_are_renewed_before_and_after_they_end(place: Place) -> None:
    await place.repo.pull(42)
    place.github.advance_clock(timedelta(minutes=56))
    await place.repo.pull(42)
    place.github.expire_tokens()
    await asyncio.gather(*(place.repo.pull(42) for _ in range(3)))
    assert len(place.github.asked("POST", "access_tokens$")) == 3


async def test_a_limit_is_obeyed(place: Place) -> None:
    place.github.limit_next("GET", "/pulls/42$", retry_after_s=1)
    assert (await place.repo.pull(42)).number == 42
    place.github.use_up_rate_limit(resets_in_s=1)
    assert (await place.repo.role("ada")) == "maintain"


def check_view(place: Place, annotations: int, *, run: int = 7) -> CheckView:
    remarks = tuple(Annotation("a.py", line, "Out of memory", "rank 3") for line in range(1, annotations + 1))
    return CheckView(place.pull.head_sha, "1 root cause", "s" * 70_000, f"{run}:1:abc", annotations=remarks)


async def test_a_check_run_is_edited_in_place_and_its_annotations_come_in_batches(place: Place) -> None:
    await place.checks.publish(check_view(place, 120))
    (check,) = place.github.checks(place.pull)
    assert (check.name, check.conclusion, check.external_id) == ("mlm-bot / diagnosis", "neutral", "7:1:abc")
    assert [one["start_line"] for one in check.annotations] == list(range(1, 121))
    assert [action["label"] for action in check.actions] == ["Re-run failed", "Re-analyze", "Mute"]
    await place.checks.publish(check_view(place, 120))
    assert len(place.github.checks(place.pull)) == 1
    assert len(check.annotations) == 120, "nothing is added twice"


async def test_other_annotations_make_a_new_check_run_of_the_same_name(place: Place) -> None:
    await place.checks.publish(check_view(place, 1))
    await place.checks.publish(check_view(place, 2, run=8))
    first, second = place.github.checks(place.pull)
    assert (len(first.annotations), len(second.annotations)) == (1, 2)


async def test_team_members_are_known_by_a_token_that_may_ask(place: Place) -> None:
    place.github.add_team("mcore", "ada", repo=place.github.repo)
    assert await place.repo.in_team("NVIDIA/mcore", "ada")
    assert not await place.repo.in_team("NVIDIA/mcore", "eve")
    assert not await place.repo.in_team("no team", "ada")
    asked = [seen.body["permissions"] for seen in place.github.asked("POST", "access_tokens$")]
    assert [sorted(permissions).count("members") for permissions in asked] == [1]


async def test_labels_are_set_and_taken_off(place: Place) -> None:
    await place.repo.add_labels(place.pull.number, ["container::lts"])
    assert (await place.repo.pull(42)).labels == ("Run tests", "container::lts")
    await place.repo.remove_label(place.pull.number, "Run tests")
    await place.repo.remove_label(place.pull.number, "Run tests")
    assert (await place.repo.pull(42)).labels == ("container::lts",)
