"""The analyzers in worker processes: off the event loop, and killed when a log takes too long or too much memory.

Each worker is a pool of one process, so that killing one never breaks what another is reading.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path

import structlog
from cachetools import LRUCache

from analyzers.model import Diagnosis
from bot.analysis_worker import diagnose_files, start_worker, unknown
from handlers.context import Fetched

log = structlog.get_logger()

#: A new process may need this long to import the analyzers on a busy machine.
START_LIMIT_S = 60.0
#: The same question comes again when a delivery is repeated or a pull request is looked through for what was missed.
ANSWERS_KEPT = 256
#: What is asked: the job's name, and which files were fetched. Downloaded files are never changed in place.
Question = tuple[Hashable, ...]
Diagnose = Callable[[str, Fetched | None, Sequence[Fetched]], Diagnosis]


class Worker:
    """One process, started when it is first needed and again after it was killed."""

    def __init__(self, diagnose: Diagnose) -> None:
        self._diagnose = diagnose
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0

    async def run(
        self, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched], *, limit_s: float
    ) -> Diagnosis:
        """Diagnose in the process.

        Raises:
            TimeoutError: it took longer than `limit_s`; the process is gone.
            BrokenExecutor: the process died.
        """
        loop = asyncio.get_running_loop()
        try:
            pool = await self._started()
            async with asyncio.timeout(limit_s):
                return await loop.run_in_executor(pool, self._diagnose, job_name, job_log, tuple(artifacts))
        except (TimeoutError, BrokenExecutor, asyncio.CancelledError):
            self.kill()
            raise

    async def start(self) -> None:
        """Start the process now, so that its first job need not wait for it."""
        try:
            await self._started()
        except (TimeoutError, BrokenExecutor, asyncio.CancelledError):
            self.kill()
            raise

    async def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # "spawn": a fork would copy the threads' locks and the sockets of the server.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker)
            before = {child.pid for child in multiprocessing.active_children()}
            started = self._pool.submit(os.getpid)
            # Known before it has imported anything, so that even a process that is just starting can be ended.
            self._pid = next(
                (child.pid or 0 for child in multiprocessing.active_children() if child.pid not in before), 0
            )
            async with asyncio.timeout(START_LIMIT_S):
                self._pid = await asyncio.wrap_future(started)
        return self._pool

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        pool, self._pool, pid, self._pid = self._pool, None, self._pid, 0
        if pid:
            with contextlib.suppress(ProcessLookupError):  # it died by itself
                os.kill(pid, signal.SIGKILL)
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _question(job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Question | None:
    """Return what identifies the answer; None if there is no file to tell it by."""
    parts: list[Hashable] = [job_name, job_log is None]
    for one in (job_log, *artifacts):
        if one is not None and one.path is not None:
            try:
                facts = Path(one.path).stat()
            except OSError:  # it was thrown away meanwhile: the worker will say so
                return None
            parts.append((one.name, one.path, facts.st_ino, facts.st_size))
        elif one is not None:
            parts.append((one.name, one.why))
    return tuple(parts) if any(one is not None and one.path for one in (job_log, *artifacts)) else None


class AnalysisPool:
    """Implements `handlers.context.Analysis`."""

    def __init__(self, *, workers: int, limit_s: float, diagnose: Diagnose = diagnose_files) -> None:
        self._limit_s = limit_s
        self._workers = [Worker(diagnose) for _ in range(workers)]
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        for worker in self._workers:
            self._idle.put_nowait(worker)
        self._known: LRUCache[Question, Diagnosis] = LRUCache(ANSWERS_KEPT)

    async def diagnose(self, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Diagnosis:
        """Diagnose one job; a log that breaks the analysis gives an answer that says so, never an exception."""
        question = await asyncio.to_thread(_question, job_name, job_log, artifacts)
        if question is not None and question in self._known:
            return self._known[question]
        worker = await self._idle.get()
        try:
            found = await worker.run(job_name, job_log, artifacts, limit_s=self._limit_s)
        except TimeoutError:
            log.warning("analysis.too_slow", job=job_name, limit_s=self._limit_s)
            return unknown(f"The logs could not be analysed within {self._limit_s:.0f} s, so the reading was stopped.")
        except BrokenExecutor:
            log.warning("analysis.died", job=job_name)
            return unknown("The analysis of the logs ended unexpectedly, most likely for want of memory.")
        except Exception:
            # A bug of an analyzer on this log: the reader is told, we read the traceback.
            log.exception("analysis.failed", job=job_name)
            return unknown("The analysis of the logs failed on something in them; this is a bug of the bot.")
        else:
            if question is not None:
                self._known[question] = found
            return found
        finally:
            self._idle.put_nowait(worker)

    async def warm(self) -> None:
        """Start all processes that are idle; one that fails is started again when there is work."""
        workers = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
        except (TimeoutError, BrokenExecutor):
            log.exception("analysis.not_started")
        finally:
            for worker in workers:
                self._idle.put_nowait(worker)

    async def close(self) -> None:
        """End all worker processes."""
        for worker in self._workers:
            worker.kill()
