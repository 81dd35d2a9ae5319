"""A log that hangs or kills the analysis costs one answer, not the bot."""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import signal
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from multiprocessing.connection import wait
from multiprocessing.popen_spawn_posix import Popen
from pathlib import Path
from typing import Any

import pytest
import structlog

from analyzers.model import Category
from bot import worker as workers
from bot.analysis import AnalysisPool
from bot.analysis_worker import Answer, Said, diagnose_files, unknown
from bot.worker import Worker
from handlers.context import Fetched
from tests.logs import raised


def by_job_name(
    job_name: str, _log: Fetched | None, _artifacts: Sequence[Fetched], _known: Mapping[str, Said]
) -> Answer:
    """Runs in the worker process: the job's name says what happens."""
    if job_name == "hangs":
        time.sleep(600)
    if job_name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if job_name == "aborts":
        os.abort()
    if job_name == "swallows":
        raise MemoryError
    if job_name == "fills":
        raise OSError(errno.ENOSPC, "No space left on device")
    if job_name == "fills in part":
        return Answer(unknown(f"{job_name} in {os.getpid()}"), lasting=False, hindered=True)
    if job_name == "raises":
        raise ValueError("bug")
    if job_name == "slow":
        time.sleep(1.0)
    return Answer(unknown(f"{job_name} in {os.getpid()}"))


@asynccontextmanager
async def pool(
    workers: int = 1, diagnose: Callable[..., Answer] = by_job_name, limit_s: float = 60.0, **more: Any
) -> AsyncIterator[AnalysisPool]:
    made = AnalysisPool(workers=workers, limit_s=limit_s, diagnose=diagnose, **more)
    try:
        yield made
    finally:
        await made.close()


async def ask(analysis: AnalysisPool, job_name: str) -> str:
    return (await analysis.for_repo(1).diagnose(job_name=job_name, job_log=None, artifacts=())).summary


async def wait_for_end(pid: int) -> None:
    """Wait until there is no such process of ours."""
    assert pid
    async with asyncio.timeout(60):
        while pid in {child.pid for child in multiprocessing.active_children()}:
            await asyncio.sleep(0.05)


async def test_each_misfortune_is_told_and_the_next_job_is_read() -> None:
    async with pool(limit_s=4.0) as analysis:
        first = await ask(analysis, "fine")
        assert first == await ask(analysis, "fine"), "the process is kept"
        assert "bug" in await ask(analysis, "raises")
        assert first == await ask(analysis, "fine")
        assert "within 4 s" in await ask(analysis, "hangs")
        second = await ask(analysis, "fine")
        assert second != first
        assert "more memory" in await ask(analysis, "dies")
        assert await ask(analysis, "fine") not in {first, second}


async def test_each_misfortune_is_counted_by_its_reason() -> None:
    reasons: list[str] = []
    async with pool(limit_s=4.0, observe=reasons.append) as analysis:
        for job_name, reason in (
            ("fine", None),
            ("raises", "bug"),
            ("fills", "disk"),
            ("fills in part", "disk"),
            ("swallows", "memory"),
            ("dies", "memory"),
            ("aborts", "crash"),
            ("hangs", "time"),
        ):
            with structlog.testing.capture_logs() as said:
                summary = await ask(analysis, job_name)
            assert reasons[-1:] == ([reason] if reason else [])
            assert [line["reason"] for line in said if line["event"] == "analysis.failed"] == reasons[-1:]
            assert ("bug of the bot" in summary) == (reason == "bug")
    assert len(reasons) == 7


async def test_how_a_worker_ended_is_waited_for_while_another_thread_is_being_told() -> None:
    class Ending:
        asked = 0

        @property
        def exitcode(self) -> int | None:
            self.asked += 1
            return None if self.asked < 4 else -signal.SIGKILL

    worker = Worker(None)
    worker._process = Ending()  # type: ignore[assignment]
    assert await worker._was_killed()


async def test_a_worker_that_died_while_it_was_idle_costs_no_answer() -> None:
    async with pool() as analysis:
        first = await ask(analysis, "fine")
        process = analysis._workers[0]._process
        assert process is not None
        process.kill()
        assert wait([process.sentinel], timeout=60)
        second = await ask(analysis, "fine")
        assert second.startswith("fine in ")
        assert second != first


async def test_a_process_that_cannot_be_started_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that comes after it can be ended like any other."""
    launch, refusals = Popen._launch, [OSError(errno.EAGAIN, "Resource temporarily unavailable")]

    def refused_once(popen: Popen, process: Any) -> None:
        if refusals:
            raise refusals.pop()
        launch(popen, process)

    monkeypatch.setattr(Popen, "_launch", refused_once)
    async with pool(limit_s=4.0) as analysis:
        assert "ended unexpectedly" in await ask(analysis, "fine")
        assert (await ask(analysis, "fine")).startswith("fine in ")
        pid = analysis._workers[0].pid
        assert "within 4 s" in await ask(analysis, "hangs")
        await wait_for_end(pid)


async def test_a_process_that_does_not_come_up_is_not_the_log_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_LIMIT_S", 0.0)
    async with pool() as analysis:
        assert "ended unexpectedly" in await ask(analysis, "fine")
        await analysis.warm()
        assert analysis._workers[0].pid == 0
        monkeypatch.undo()
        assert (await ask(analysis, "fine")).startswith("fine in ")


async def test_who_is_cancelled_while_a_death_is_looked_into_leaves_a_worker_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, asked = Worker(None), asyncio.Event()

    async def never() -> bool:
        asked.set()
        return await asyncio.Event().wait()

    monkeypatch.setattr(worker, "_was_killed", never)
    try:
        dying = asyncio.create_task(worker.run(os._exit, 1, limit_s=60.0))
        await asked.wait()
        dying.cancel()
        await asyncio.wait([dying])
        assert worker.pid == 0
    finally:
        worker.kill()


async def test_the_event_loop_has_nothing_to_do_meanwhile(tmp_path: Path) -> None:
    """Told by the processor time of the loop's own thread: that of the clock is the machine's other work, too."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for rank in range(8):
            archive.writestr(f"1/none_ab/attempt_0/{rank}/stdout.log", f"{'step ' * 20}\n" * 100_000)
    analysis = AnalysisPool(workers=1, limit_s=90.0)
    try:
        await analysis.warm()
        before = time.thread_time()
        files = [Fetched(name="a", path=str(path))]
        found = await analysis.for_repo(1).diagnose(job_name="a", job_log=None, artifacts=files)
        assert time.thread_time() - before < 0.05
        assert found.read.bytes == 8 * 10_100_000
    finally:
        await analysis.close()


async def test_workers_can_be_started_ahead_of_the_work() -> None:
    async with pool(workers=2) as analysis:
        await analysis.warm()
        pids = {worker.pid for worker in analysis._workers}
        assert len(pids) == 2
        assert (await ask(analysis, "fine")).removeprefix("fine in ") in {str(pid) for pid in pids}


async def test_a_worker_that_is_just_starting_can_be_ended() -> None:
    async with pool() as analysis:
        starting = asyncio.create_task(analysis.warm())
        await asyncio.sleep(0.1)
        pid = analysis._workers[0].pid
        assert pid
        await analysis.close()
        await starting
    await wait_for_end(pid)


async def test_a_killed_worker_does_not_take_its_neighbour_along() -> None:
    async with pool(workers=2) as analysis:
        await asyncio.gather(ask(analysis, "slow"), ask(analysis, "slow"))
        slow, _ = await asyncio.gather(ask(analysis, "slow"), ask(analysis, "dies"))
        assert slow.startswith("slow in ")


async def test_the_loop_goes_on_while_a_log_is_read() -> None:
    async with pool() as analysis:
        await ask(analysis, "fine")
        reading = asyncio.create_task(ask(analysis, "slow"))
        await asyncio.sleep(0)  # all the rest would be done by then if it were done on the loop
        assert not reading.done()
        await reading


def test_what_could_not_be_fetched_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04 and no more")
    gone = Fetched("logs-a", None, "it expired on 2026-11-01")
    log = Fetched("job.log", str(tmp_path / "absent.log"))
    found = diagnose_files("unit", log, (gone, Fetched("b", str(broken))), {}).diagnosis
    assert found.category is Category.UNKNOWN
    told = {one.name: one.why for one in found.read.skipped}
    assert told["logs-a"] == "it expired on 2026-11-01"
    assert len(told) >= 2


@pytest.mark.parametrize("text", [None, b"BZh91AY&SY packed"])
def test_a_job_log_that_cannot_be_read_takes_no_artifact_along(tmp_path: Path, text: bytes | None) -> None:
    """It may have been thrown away since it was fetched; what there is says what it says without it."""
    for name in ("a", "b"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("1/none_ab/attempt_0/2/stderr.log", raised("ValueError: boom", "megatron/core/a.py:3 f"))
    log = tmp_path / "job-21.log"
    if text is not None:
        log.write_bytes(text)
    artifacts = [Fetched(name, str(tmp_path / f"{name}.zip"), digest=name) for name in ("a", "b")]
    with_log = diagnose_files("unit", Fetched("job.log", str(log), digest="log"), artifacts, {})
    without = diagnose_files("unit", None, artifacts, {})
    assert with_log.diagnosis.error is not None
    assert with_log.diagnosis.error == without.diagnosis.error
    assert [one.name for one in with_log.diagnosis.read.skipped] == ["job.log"]
    assert str(tmp_path) not in with_log.diagnosis.read.skipped[0].why
    assert (with_log.lasting, with_log.said) == (False, without.said)


async def test_real_files_are_diagnosed_in_a_worker(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("2026-12-01T10:00:00.0000000Z ##[error]Process completed with exit code 1.\n")
    async with pool(diagnose=diagnose_files) as analysis:
        files = Fetched("job.log", str(log))
        found = await analysis.for_repo(1).diagnose(job_name="linting", job_log=files, artifacts=())
    assert not found.passed
    assert found.read.bytes == log.stat().st_size
