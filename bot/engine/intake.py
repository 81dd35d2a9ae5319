"""Deliveries that wait at the same time are stored in one transaction: a commit is what an accept costs most.

One thread of its own writes: it stands in no line behind the steps of the work, and competes with itself for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa
import structlog
from dbos import DBOSClient, EnqueueOptions, error

from bot.engine.adapter import EndingError
from bot.engine.documents import dump_task, place, task_id
from bot.engine.workflows import WORKFLOW, enqueue
from handlers.context import Task

log = structlog.get_logger()

#: Stored in one transaction at the most: more of them would let the first one wait for the last.
BATCH = 64
#: How long SQLite may wait for another writer, in seconds; beyond it dbos goes on waiting.
BUSY_S = 5.0
#: How long a connection to PostgreSQL may take to be made, in seconds (libpq's option).
CONNECT = {"connect_timeout": 5}

ENDING = "the bot is being stopped"

Waiting = tuple[Task, asyncio.Future[bool]]


class Intake:
    """`store` from the event loop, as often and as many at once as you like; one per engine."""

    def __init__(self, database_url: str, *, like: Mapping[str, Any]) -> None:
        """Store on behalf of the dbos that was started with the settings `like`."""
        self._version: str = like["application_version"]
        self._database = _database(database_url)
        self._client = DBOSClient(
            system_database_engine=self._database,
            serializer=like["serializer"],
            application_name=like["name"],
            lazy=True,
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="intake")
        self._waiting: list[Waiting] = []
        self._storing: asyncio.Task[None] | None = None
        self._alone: set[asyncio.Task[None]] = set()
        self._asked: set[asyncio.Future[bool]] = set()
        self._ending = False

    async def store(self, task: Task) -> bool:
        """Return once the task is durable: True if it is new, False if its id is known.

        Raises:
            EndingError: nothing is stored any more; it may have been, and the same id is harmless then.
            What the database raises when it cannot be had.
        """
        if self._ending:
            raise EndingError(ENDING)
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked.add(stored)
        stored.add_done_callback(self._asked.discard)
        self._waiting.append((task, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store_all())
        return await stored

    def turn_away(self) -> None:
        """Store nothing from now on, and answer all who wait."""
        self._ending = True
        for stored in self._asked:
            if not stored.done():
                stored.set_exception(EndingError(ENDING))

    async def close(self) -> None:
        """Let go of the database; nothing may be stored afterwards."""
        self.turn_away()
        if self._storing is not None:
            await asyncio.wait([self._storing], timeout=BUSY_S)  # a server that is gone may keep it for longer
        for alone in self._alone:
            alone.cancel()
        await asyncio.gather(*self._alone, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._database.dispose()

    async def _store_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            # Whoever gave up was told that it is not stored.
            await self._settle([one for one in batch if not one[1].done()])
        self._storing = None

    async def _settle(self, batch: Sequence[Waiting]) -> None:
        tasks = [task for task, _ in batch]
        try:
            loop = asyncio.get_running_loop()
            new = await loop.run_in_executor(self._thread, self._write, tasks)
        except Exception as why:  # noqa: BLE001 (whoever waits is told their own error, and the line goes on)
            log.info("intake.one_by_one", tasks=len(tasks), why=repr(why)[:300])
            # dbos knows which errors pass by themselves, and waits for that; those that come meanwhile do not.
            for task, stored in batch:
                alone = asyncio.create_task(_store_one(task, stored))
                self._alone.add(alone)
                alone.add_done_callback(self._alone.discard)
            return
        for (_, stored), one in zip(batch, new, strict=True):
            if not stored.done():
                stored.set_result(one)

    def _write(self, tasks: Sequence[Task]) -> list[bool]:
        with self._database.begin() as connection:
            return [self._is_new(connection, task) for task in tasks]

    def _is_new(self, connection: sa.Connection, task: Task) -> bool:
        spot = place(task)
        options = EnqueueOptions(
            workflow_name=WORKFLOW,
            workflow_id=task_id(task),
            workflow_id_reuse_policy="reject",
            queue_name=spot.queue,
            app_version=self._version,
        )
        if spot.partition is not None:
            options["queue_partition_key"] = spot.partition
        if task.delay_s:
            options["delay_seconds"] = task.delay_s
        try:
            self._client.enqueue_in_transaction(connection, options, dump_task(task), 0)
        except error.DBOSWorkflowIDInUseError:
            return False
        return True


def _database(url: str) -> sa.Engine:
    """Return connections for one thread, kept open; SQLite's take the write lock at the start, as dbos's do."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return sa.create_engine(parsed, pool_size=1, connect_args={"isolation_level": "IMMEDIATE", "timeout": BUSY_S})
    return sa.create_engine(
        parsed.set(drivername="postgresql+psycopg"), pool_size=1, pool_pre_ping=True, connect_args=CONNECT
    )


async def _store_one(task: Task, stored: asyncio.Future[bool]) -> None:
    """Store by dbos's own means, and tell whoever waits how it went."""
    storing = asyncio.ensure_future(enqueue(task, only_new=True))
    stored.add_done_callback(lambda _: storing.cancel())
    try:
        await storing
        new = True
    except error.DBOSWorkflowIDInUseError:
        new = False
    except asyncio.CancelledError:
        return  # nobody waits any longer
    except Exception as why:  # noqa: BLE001 (it is handed to whoever waits)
        if not stored.done():
            stored.set_exception(why)
        return
    if not stored.done():
        stored.set_result(new)
