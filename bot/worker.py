"""A process of its own for what may take too long, want too much memory or crash: it can be ended at any time."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from bot.analysis_worker import start_worker

#: A new process may need this long to import the analyzers on a busy machine.
START_LIMIT_S = 60.0
#: How long it is waited for how a process ended that is known to be dead, in seconds.
ENDED_S = 5.0
Result = TypeVar("Result")


class KilledError(BrokenExecutor):
    """A worker was killed, and not by us."""


def _exit_code(process: BaseProcess) -> int | None:
    until_s = time.monotonic() + ENDED_S
    while process.exitcode is None and time.monotonic() < until_s:
        time.sleep(0.01)  # it is dead, but the pool's own thread is just being told how
    return process.exitcode


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
            BrokenExecutor: the process died otherwise, or none could be started.
        """
        loop = asyncio.get_running_loop()
        try:
            pool = await self._started()
            async with asyncio.timeout(limit_s):
                return await loop.run_in_executor(pool, work, *given)
        except BrokenExecutor as error:
            try:
                killed = await self._was_killed()
            finally:
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
        except (BrokenExecutor, asyncio.CancelledError):
            self.kill()
            raise

    async def _started(self) -> ProcessPoolExecutor:
        if self._process is not None and wait([self._process.sentinel], timeout=0):
            self.kill()  # it ended while it had nothing to do: that is nobody's log's doing
        if self._pool is None:
            # "spawn": a fork would copy the threads' locks and the sockets of the server.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(self._spool,))
            started = self._begin(self._pool)
            try:
                async with asyncio.timeout(START_LIMIT_S):
                    pid = await asyncio.wrap_future(started)
            except TimeoutError as error:  # the machine is to blame, and not the log
                self.kill()
                raise BrokenExecutor(f"the process was not ready within {START_LIMIT_S:.0f} s") from error
            self._process = next((child for child in multiprocessing.active_children() if child.pid == pid), None)
        return self._pool

    def _begin(self, pool: ProcessPoolExecutor) -> Future[int]:
        """Let the process begin; it is known before it has imported anything, so that even then it can be ended."""
        before = {child.pid for child in multiprocessing.active_children()}
        try:
            return pool.submit(os.getpid)
        except OSError as error:  # no more processes, memory or open files: for now
            raise BrokenExecutor(f"no process could be started: {error}") from error
        finally:
            self._process = next(
                (child for child in multiprocessing.active_children() if child.pid not in before), None
            )

    @property
    def pid(self) -> int:
        """The process that there is now; 0 if there is none."""
        return (self._process.pid if self._process is not None else None) or 0

    async def _was_killed(self) -> bool:
        return self._process is not None and await asyncio.to_thread(_exit_code, self._process) == -signal.SIGKILL

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        pool, self._pool, process, self._process = self._pool, None, self._process, None
        if process is not None:
            process.kill()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
