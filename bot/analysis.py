"""The analyzers in worker processes: off the event loop, and killed when a log takes too long or too much memory.

Each worker is a pool of one process, so that killing one never breaks what another is reading.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

import structlog
from cachetools import LRUCache

from analyzers.model import Diagnosis
from bot.analysis_worker import Answer, Said, diagnose_files, read_ahead, unknown
from bot.answers import Answers
from bot.worker import KilledError, Worker
from handlers.context import Fetched

log = structlog.get_logger()

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Why a job's logs were not read, or not all of them: too long, too much memory, our disk, a dead worker, a bug.
Reason = Literal["time", "memory", "disk", "crash", "bug"]
REASONS: tuple[Reason, ...] = ("time", "memory", "disk", "crash", "bug")
#: What artifacts said is kept for the other jobs of their runs, up to so many bytes in all; mostly some 20 KB each.
SAID_KEPT_BYTES = 32 * 1024**2
Diagnose = Callable[[str, Fetched | None, Sequence[Fetched], Mapping[str, Said]], Answer]


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
        except BrokenExecutor:
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
