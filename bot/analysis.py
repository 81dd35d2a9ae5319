"""The analyzers in worker processes: off the event loop, and killed when a log takes too long or too much memory.

Each worker is a pool of one process, so that killing one never breaks what another is reading.
"""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

import structlog
from cachetools import LRUCache

from analyzers.model import Diagnosis
from bot.analysis_worker import Answer, Said, diagnose_files, read_ahead, start_worker, unknown
from bot.answers import Answers
from handlers.context import Fetched

log = structlog.get_logger()

#: A new process may need this long to import the analyzers on a busy machine.
START_LIMIT_S = 60.0
#: How long it is waited for how a process ended that is known to be dead, in seconds.
ENDED_S = 5.0
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Why a job's logs were not read, or not all of them: too long, too much memory, our disk, a dead worker, a bug.
Reason = Literal["time", "memory", "disk", "crash", "bug"]
REASONS: tuple[Reason, ...] = ("time", "memory", "disk", "crash", "bug")
#: What artifacts said is kept for the other jobs of their runs, up to so many bytes in all; mostly some 20 KB each.
SAID_KEPT_BYTES = 32 * 1024**2
Diagnose = Callable[[str, Fetched | None, Sequence[Fetched], Mapping[str, Said]], Answer]
Result = TypeVar("Result")


class KilledError(BrokenExecutor):
    """A worker was killed, and not by us."""


class Worker:
    """One process, started when it is first needed and again after it was killed."""

    def __init__(self, spool: Path | None) -> None:
        self._spool = spool
        self._pool: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None

    async def run(self, work: Callable[..., Result], *given: Any, limit_s: float) -> Result:
        """Do this in the process.

        Raises:
            TimeoutError: it took longer than `limit_s`; the process is gone.
            MemoryError: it wanted more than `MEMORY_LIMIT`; the process is gone.
            KilledError: the process was killed, as the kernel does for want of memory.
            BrokenExecutor: the process died otherwise.
        """
        loop = asyncio.get_running_loop()
        try:
            pool = await self._started()
            async with asyncio.timeout(limit_s):
                return await loop.run_in_executor(pool, work, *given)
        except BrokenExecutor as error:
            killed = await self._was_killed()
            self.kill()
            if killed:
                raise KilledError("the worker was killed") from error
            raise
        except (TimeoutError, MemoryError, asyncio.CancelledError):
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
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(self._spool,))
            before = {child.pid for child in multiprocessing.active_children()}
            started = self._pool.submit(os.getpid)
            # Known before it has imported anything, so that even a process that is just starting can be ended.
            self._process = next(
                (child for child in multiprocessing.active_children() if child.pid not in before), None
            )
            async with asyncio.timeout(START_LIMIT_S):
                pid = await asyncio.wrap_future(started)
            self._process = next((child for child in multiprocessing.active_children() if child.pid == pid), None)
        return self._pool

    @property
    def pid(self) -> int:
        """The process that there is now; 0 if there is none."""
        return (self._process.pid if self._process is not None else None) or 0

    async def _was_killed(self) -> bool:
        process = self._process
        if process is None:
            return False
        await asyncio.to_thread(process.join, ENDED_S)  # it is dead; the pool's own thread may be asking just now
        return process.exitcode == -signal.SIGKILL

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        pool, self._pool, process, self._process = self._pool, None, self._process, None
        if process is not None:
            process.kill()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Job:
    """What is asked, and for which repository."""

    repo_id: int
    name: str
    log: Fetched | None
    artifacts: tuple[Fetched, ...]

    @property
    def files(self) -> tuple[str, Fetched | None, tuple[Fetched, ...]]:
        return self.name, self.log, self.artifacts

    def readable(self) -> list[tuple[int, str]]:
        """Return what must not be read twice: its artifacts, or its log if there are none; sorted."""
        files = self.artifacts or ((self.log,) if self.log is not None else ())
        return sorted({(self.repo_id, one.digest) for one in files if one.path and one.digest})


class AnalysisPool:
    """The workers, and what they found: an artifact is read once, whichever jobs of its repository ask for it."""

    def __init__(
        self,
        *,
        workers: int,
        limit_s: float,
        diagnose: Diagnose = diagnose_files,
        folder: Path | None = None,
        observe: Callable[[Reason], None] = lambda _reason: None,
    ) -> None:
        """Keep answers in `folder`, the one of the downloads, too; without one they are forgotten with the process.

        `observe` is told of each job whose logs were not read, or not all of them.
        """
        self._observe = observe
        self._limit_s = limit_s
        self._diagnose = diagnose
        self._workers = [Worker(folder) for _ in range(workers)]
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        for worker in self._workers:
            self._idle.put_nowait(worker)
        self._answers = Answers(folder)
        self._said: LRUCache[tuple[int, str], Said] = LRUCache(SAID_KEPT_BYTES, getsizeof=_size)
        self._ahead: LRUCache[tuple[int, str], Said] = LRUCache(SAID_KEPT_BYTES, getsizeof=_size)
        self._reading: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def for_repo(self, repo_id: int) -> RepoAnalysis:
        return RepoAnalysis(self, repo_id)

    async def diagnose(self, job: Job) -> Diagnosis:
        """Diagnose one job; a log that breaks the analysis gives an answer that says so, never an exception."""
        asked = await self._answers.question(job.repo_id, job_name=job.name, job_log=job.log, artifacts=job.artifacts)
        async with AsyncExitStack() as claimed:
            # Known before all claims, or found meanwhile by whoever read the same.
            if (known := await self._answers.recall(job.repo_id, asked)) is not None:
                return known
            await self._claim(job, claimed)
            if (known := await self._answers.recall(job.repo_id, asked)) is not None:
                return known
            found = await self._read(job)
            if isinstance(found, Answer):
                if found.hindered:
                    self._fail("disk", job)
                self._said.update({(job.repo_id, digest): said for digest, said in found.said.items() if _fits(said)})
                if found.lasting:
                    await self._answers.keep(job.repo_id, asked, found.diagnosis)
                return found.diagnosis
            return unknown(found)

    async def _claim(self, job: Job, claimed: AsyncExitStack) -> None:
        """Wait while others read the job's artifacts; let nobody begin to, until it is known what they say."""
        for key in job.readable():
            lock = self._reading.setdefault(key, asyncio.Lock())
            await lock.acquire()
            if key in self._said:
                lock.release()
            else:
                claimed.callback(lock.release)

    async def _read(self, job: Job) -> Answer | str:
        """Have a worker read the job's files, or say in a sentence why there is no answer."""
        keys = [(job.repo_id, one.digest) for one in job.artifacts]
        known = {key[1]: self._said.get(key) or self._ahead.get(key, ()) for key in keys}
        worker = await self._idle.get()
        try:
            return await worker.run(self._diagnose, *job.files, known, limit_s=self._limit_s)
        except TimeoutError:
            self._fail("time", job, limit_s=self._limit_s)
            return f"The logs could not be analysed within {self._limit_s:.0f} s, so the reading was stopped."
        except (MemoryError, KilledError):
            self._fail("memory", job)
            return "The analysis of the logs needed more memory than there is, so the reading was stopped."
        except BrokenExecutor:
            self._fail("crash", job)
            return "The analysis of the logs ended unexpectedly, so they were not read."
        except Exception as error:  # noqa: BLE001 (a bug of an analyzer on this log costs one answer)
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                self._fail("disk", job)
                return "The analysis of the logs found the disk of the bot full, so the reading was stopped."
            # The reader is told, we read the traceback.
            self._fail("bug", job, exc_info=True)
            return "The analysis of the logs failed on something in them; this is a bug of the bot."
        finally:
            self._idle.put_nowait(worker)

    def _fail(self, reason: Reason, job: Job, **more: Any) -> None:
        """Note that a job's logs were not read, or not all of them."""
        self._observe(reason)
        log.warning("analysis.failed", reason=reason, job=job.name, **more)

    def read_ahead(self, path: Path, names: frozenset[str]) -> Awaitable[tuple[bytes, int] | None] | None:
        """Have members of an archive that is still arriving read (`bot.github.ahead`), if a worker is idle."""
        if self._idle.empty():
            return None
        worker = self._idle.get_nowait()
        reading = asyncio.create_task(self._read_ahead(worker, path, names))
        # Not in the task: one that is cancelled before its first step does nothing at all.
        reading.add_done_callback(lambda _: self._idle.put_nowait(worker))
        return reading

    async def _read_ahead(self, worker: Worker, path: Path, names: frozenset[str]) -> tuple[bytes, int] | None:
        try:
            return await worker.run(read_ahead, str(path), names, limit_s=self._limit_s)
        except (TimeoutError, BrokenExecutor):
            log.warning("analysis.not_ahead", file=path.name)
            return None
        except Exception:
            # The reading proper comes, and then the reader of the comment is told.
            log.exception("analysis.not_ahead", file=path.name)
            return None

    def keep_ahead(self, repo_id: int, digest: str, said: Said) -> None:
        """Keep what was read ahead of an artifact, now that it is whole, for the job that asks for it."""
        if said and _fits(said):
            self._ahead[repo_id, digest] = said

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


@dataclass(frozen=True)
class RepoAnalysis:
    """Implements `handlers.context.Analysis` for one repository, which never sees what was found for another one."""

    pool: AnalysisPool
    repo_id: int

    async def diagnose(self, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Diagnosis:
        """Diagnose one job, as `AnalysisPool.diagnose` does."""
        return await self.pool.diagnose(Job(self.repo_id, job_name, job_log, tuple(artifacts)))


def _size(said: Said) -> int:
    return sum(map(len, said))


def _fits(said: Said) -> bool:
    return _size(said) < SAID_KEPT_BYTES // 4
