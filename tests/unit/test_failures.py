"""One failed job: read all that can be read, say what could not, keep no secret, and start nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import HEAD, MODELS, NOW, make_artifact, make_diagnosis, make_job, make_pull, make_run

from analyzers.model import Category, Diagnosis
from config.repo import default_config
from handlers.context import Artifact, Fetched, Job, JobFinding, RateLimitedError, RefusedError, Repo, Task
from handlers.events import KEEPERS
from handlers.failures import explain, keep, unexplained
from handlers.reruns import Order, start, was_started
from handlers.runs import main_run, merge_queue_pull, mirrored_pull
from handlers.tasks import DELIVERIES, TASKS, perform

TOKEN = "ghp_" + "a1B2" * 9
UUID = "00000001-0000-4000-8000-000000000000"
NAME = f"logs-tests-unit_tests-models-----.py-7-{UUID}"


class Memory:
    """The store, in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.found: list[JobFinding] = []

    async def once(self, key: str, value: dict[str, Any]) -> dict[str, Any]:
        return self.rows.setdefault(key, value)

    async def recall(self, key: str) -> dict[str, Any] | None:
        return self.rows.get(key)

    async def remember(self, key: str, value: dict[str, Any]) -> None:
        self.rows[key] = value

    async def save_finding(self, finding: JobFinding) -> None:
        self.found.append(finding)


class Desk:
    """GitHub's listing, the files, and the analysis, of one job."""

    def __init__(self, *, log: Fetched, artifacts: dict[int, Fetched], listed: Sequence[Artifact] | int) -> None:
        self.log, self.fetched, self.listed = log, artifacts, listed
        self.answer: Diagnosis = make_diagnosis(summary=f"it said {TOKEN}")
        self.read: list[str] = []

    async def artifacts(self, _run_id: int) -> Sequence[Artifact]:
        if isinstance(self.listed, int):
            raise RefusedError("Resource not accessible by integration", status=self.listed)
        return self.listed

    async def job_log(self, _job: Job) -> Fetched:
        return self.log

    async def artifact(self, artifact: Artifact) -> Fetched:
        return self.fetched[artifact.id]

    async def tail(self, _fetched: Fetched) -> str:
        return ""

    async def diagnose(self, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Diagnosis:
        self.read = [job_name, *([job_log.name] if job_log else []), *(one.name for one in artifacts)]
        return self.answer


def scene(desk: Desk) -> Any:
    return SimpleNamespace(
        github=desk, files=desk, analysis=desk, store=Memory(), config=default_config(), now=lambda: NOW
    )


LOG = Fetched("job.log", "/x/job.log")
NO_LOG = Fetched("job.log", None, "was never written")
ZIP = Fetched(NAME, "/x/a.zip")


async def test_log_and_artifact_are_read() -> None:
    desk = Desk(log=LOG, artifacts={500: ZIP}, listed=[make_artifact(NAME)])
    found = await explain(make_job(), make_run(), scene(desk))
    assert desk.read == [MODELS, "job.log", NAME]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("desk", "notes", "read"),
    [
        (Desk(log=NO_LOG, artifacts={500: ZIP}, listed=[make_artifact(NAME)]), ["was never written"], [NAME]),
        (
            Desk(log=LOG, artifacts={500: Fetched(NAME, None, "has expired")}, listed=[make_artifact(NAME)]),
            [f"The log artifact {NAME} has expired."],
            ["job.log"],
        ),
        (Desk(log=LOG, artifacts={}, listed=[]), ["No log artifact of this job was found"], ["job.log"]),
        (Desk(log=LOG, artifacts={}, listed=403), ["could not be listed: GitHub said 403"], ["job.log"]),
    ],
)
async def test_what_cannot_be_read_is_a_note_and_the_rest_answers(
    desk: Desk, notes: list[str], read: list[str]
) -> None:
    found = await explain(make_job(), make_run(), scene(desk))
    assert [any(note in told for told in found.notes) for note in notes] == [True] * len(notes)
    assert desk.read == [MODELS, *read]
    assert found.diagnosis is desk.answer


async def test_the_second_upload_is_read_when_the_first_cannot() -> None:
    listed = [make_artifact(NAME), make_artifact(f"{NAME}-retry", id=501, size_bytes=5)]
    fetched = {500: Fetched(NAME, None, "does not match its digest"), 501: Fetched(f"{NAME}-retry", "/x/b.zip")}
    desk = Desk(log=LOG, artifacts=fetched, listed=listed)
    found = await explain(make_job(), make_run(), scene(desk))
    assert desk.read[-1] == f"{NAME}-retry"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("conclusion", "category"),
    [("failure", Category.UNKNOWN), ("timed_out", Category.JOB_TIMEOUT), ("cancelled", Category.CANCELLED)],
)
async def test_without_any_log_only_what_is_known_is_said(conclusion: str, category: Category) -> None:
    desk = Desk(log=NO_LOG, artifacts={}, listed=[])
    found = (await explain(make_job(conclusion=conclusion), make_run(), scene(desk))).diagnosis
    assert desk.read == []
    assert found.category is category
    assert "none of its logs could be read" in found.summary


async def test_a_red_job_with_green_logs_did_not_pass() -> None:
    desk = Desk(log=LOG, artifacts={}, listed=[])
    desk.answer = make_diagnosis(passed=True, category=None)
    found = (await explain(make_job(), make_run(), scene(desk))).diagnosis
    assert not found.passed
    assert "its logs show no failure" in found.summary


async def test_no_secret_is_stored_and_a_copied_job_is_not_explained_again() -> None:
    ctx = scene(Desk(log=LOG, artifacts={}, listed=[]))
    job = make_job()
    assert [found.id for found in await unexplained(make_run(), [job], ctx)] == [100]
    await keep(job, make_run(), [make_pull()], ctx)
    assert TOKEN not in repr(ctx.store.found)
    assert "[redacted:github-token]" in ctx.store.found[0].diagnosis.summary
    copied = make_job(id=200, attempt=2)
    really_again = make_job(id=201, attempt=2, completed_at=NOW)
    assert await unexplained(make_run(attempt=2), [copied], ctx) == []
    assert await unexplained(make_run(attempt=2), [really_again], ctx) == [really_again]


async def test_a_rerun_is_started_once_even_after_a_crash() -> None:
    ctx = scene(Desk(log=LOG, artifacts={}, listed=[]))
    calls: list[int] = []

    async def call() -> None:
        calls.append(1)

    order = Order(key="rerun-1", by="ada", why="test", extra={})
    assert not await was_started("rerun-1", make_run(), ctx)
    assert await start(make_run(), call, order, ctx) == 2
    assert await start(make_run(attempt=2), call, order, ctx) == 2
    assert await was_started("rerun-1", make_run(attempt=2), ctx)
    assert len(calls) == 1
    assert ctx.store.rows["started-7-2"]["by"] == "ada"


async def test_a_refused_rerun_may_be_tried_again() -> None:
    ctx = scene(Desk(log=LOG, artifacts={}, listed=[]))

    async def refuse() -> None:
        raise RefusedError("This workflow is already running", status=403)

    order = Order(key="rerun-1", by="ada", why="test", extra={})
    with pytest.raises(RefusedError):
        await start(make_run(), refuse, order, ctx)
    assert not await was_started("rerun-1", make_run(), ctx)


@pytest.mark.parametrize(
    ("branch", "event", "mirrored", "queued"),
    [
        ("pull-request/42", "push", 42, None),
        ("pull-request/42x", "push", None, None),
        ("feature/pull-request/42", "push", None, None),
        (None, "push", None, None),
        (f"gh-readonly-queue/main/pr-42-{HEAD}", "merge_group", None, 42),
        (f"gh-readonly-queue/main/pr-42-{HEAD}", "push", None, None),
    ],
)
def test_pull_requests_by_branch(branch: str | None, event: str, mirrored: int | None, queued: int | None) -> None:
    run = make_run(head_branch=branch, event=event)
    assert mirrored_pull(run, default_config()) == mirrored
    assert merge_queue_pull(run) == queued


def test_the_run_that_commands_act_upon() -> None:
    config = default_config()
    other = make_run(id=9, name="Docs", workflow_id=2)
    old, new = make_run(id=7), make_run(id=8)
    branch = make_run(id=10, head_branch="fuse", event="pull_request")
    assert main_run([other, old, new, branch], number=42, config=config) == new
    assert main_run([other], number=42, config=config) == other
    assert main_run([], number=42, config=config) is None


async def test_every_name_of_a_task_is_known() -> None:
    known = {"delivery", "diagnose", "report", "labels", "wish", "command", "vet", "rescan"}
    assert set(TASKS) == known | {"button", "retry", "rerun-wish"}
    assert set(DELIVERIES) == set(KEEPERS), "what is kept is acted upon, and the other way round"
    with pytest.raises(RateLimitedError, match="waits for the newer one"):
        await perform(Task("no-such-task", Repo(1, "a/b", 2), key="k"), scene(Desk(log=LOG, artifacts={}, listed=[])))
