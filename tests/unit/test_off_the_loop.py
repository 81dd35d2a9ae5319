"""What takes long for a large failure is done in threads: the event loop's own processor time tells.

Processor time of one thread, not the clock, and held against the same work measured here: so a busy machine cannot
make these fail.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fakes import HEAD, NOW, make_diagnosis, make_finding, make_job, make_pull, make_run

from analyzers.model import Evidence
from bot.store.findings import from_text, to_text
from bot.store.store import Database
from config.repo import default_config
from handlers.artifact_choice import choose
from handlers.check_report import publish
from handlers.context import Fetched, JobFinding
from handlers.failures import keep
from handlers.render.redaction import redact_diagnosis
from handlers.render.report import render_report
from handlers.render.view import Cause, JobView, Report, RunView

TESTS = tuple(f"tests/unit_tests/models/test_a.py::TestModel::test_step[{number}]" for number in range(3000))
LARGE = make_diagnosis(failed_tests=TESTS, evidence=Evidence("1/a/attempt_0/5/stderr.log", 12, ("Traceback",) * 40))


def spent_s(work: Callable[[], Any]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before


async def loop_spent_s(work: Awaitable[Any]) -> float:
    """Return the processor seconds of the loop's thread until the work is done, whoever does it."""
    before = time.thread_time()
    await work
    return time.thread_time() - before


@asynccontextmanager
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(f"sqlite:///{tmp_path}/mlm.db", clock=lambda: NOW)
    try:
        yield opened
    finally:
        await opened.close()


async def test_findings_are_redacted_and_stored_in_threads(tmp_path: Path) -> None:
    async def answer(result: Any) -> Any:
        return result

    async with database(tmp_path) as opened:
        context: Any = SimpleNamespace(
            files=SimpleNamespace(job_log=lambda _: answer(Fetched("job.log", "/x")), tail=lambda _: answer("")),
            github=SimpleNamespace(artifacts=lambda _: answer([])),
            analysis=SimpleNamespace(diagnose=lambda **_: answer(LARGE)),
            store=opened.for_repo(1),
            config=default_config(),
        )
        ours = await loop_spent_s(keep(make_job(), make_run(), [make_pull()], context))
        assert ours < spent_s(lambda: redact_diagnosis(LARGE)) / 2
        assert len((await context.store.findings(head_sha=HEAD))[0].diagnosis.failed_tests) == len(TESTS)


async def test_findings_are_written_and_read_in_threads(tmp_path: Path) -> None:
    found = make_finding(diagnosis=replace(LARGE, failed_tests=TESTS * 20))
    async with database(tmp_path) as opened:
        store = opened.for_repo(1)
        await store.save_finding(replace(found, job_name="first"))  # what is loaded and compiled once
        assert await loop_spent_s(store.save_finding(found)) < spent_s(lambda: to_text(found)) / 2
        reading = await loop_spent_s(store.findings(head_sha=HEAD))
    text = to_text(found)
    assert reading < spent_s(lambda: from_text(text)) / 2


async def test_the_report_is_rendered_in_a_thread() -> None:
    def cause(number: int) -> Cause:
        found = redact_diagnosis(replace(LARGE, failed_tests=TESTS[:50], fingerprint=f"{number:016x}"))
        return Cause(found, (JobView(f"job {number}", "https://github.com/o/r/actions/runs/7/job/1", 1),))

    run = RunView("CI", "https://github.com/o/r/actions/runs/7", 1, completed=True, conclusion="failure", failed=30)
    report = Report(42, HEAD, runs=(run,), causes=tuple(cause(number) for number in range(30)))
    published: list[Any] = []

    async def take(view: Any) -> None:
        published.append(view)

    context: Any = SimpleNamespace(config=default_config(), checks=SimpleNamespace(publish=take))
    render_report(report)  # patterns are compiled once
    assert await loop_spent_s(publish(report, context)) < spent_s(lambda: render_report(report)) / 2
    assert len(published) == 1


def test_no_log_keeps_the_choice_of_artifacts_busy() -> None:
    """It is made on the loop, from the end of a log that anybody may have written."""
    lines = [
        "Artifact logs-a has been successfully uploaded ",
        "logs_report=logs-",
        " Artifact ID is ",
        "Artifact logs-",
    ]
    for line in lines:
        tail = (line * (262_144 // len(line) + 1))[:262_144]
        assert spent_s(lambda tail=tail: choose([], job=make_job(), test_case="a", log_tail=tail)) < 1.0  # type: ignore[misc]


def test_large_findings_are_worth_a_thread() -> None:
    """Otherwise the tests above would measure nothing."""
    finding: JobFinding = make_finding(diagnosis=LARGE)
    assert spent_s(lambda: redact_diagnosis(finding.diagnosis)) > 0.005
