"""The durable engine: dbos behind a handful of methods. What it takes is done, once, whatever ends the process.

dbos is a singleton of the process and takes a second to import: that is done when the engine starts and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import structlog

from bot.engine.documents import ARRIVALS, JOBS, PULLS, place, stored_task, task_id
from bot.engine.locks import AliveLock, lock_for
from bot.engine.settings import THREADS, EngineSettings, dbos_config
from bot.engine.sqlite_file import index, lend_clock, write_ahead
from bot.store.watch import Told, not_told
from handlers.context import Task

if TYPE_CHECKING:
    from bot.engine.workflows import Apologize, Observe, Perform

log = structlog.get_logger()

COLLECT_EVERY_S = 3600.0
#: Soon after the start: a process that never lives for an hour collects, too.
COLLECT_FIRST_S = 60.0
LOCK_PATIENCE_S = 2.0
FAILED = ["ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
WAITING = ["ENQUEUED", "PENDING", "DELAYED"]
#: Counting stops here: the figure is for a graph.
COUNT_LIMIT = 1000


async def _taken(lock: AliveLock) -> bool:
    """Take the lock; False if somebody keeps it.

    Some hold it for a moment only: another's rescuer that looks whether we live, a child of a process that just ended.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + LOCK_PATIENCE_S
    while not await lock.take():
        if loop.time() > until:
            return False
        await asyncio.sleep(0.1)
    return True


class ExecutorInUseError(Exception):
    """Another living process uses our executor id; starting would make us redo what it is doing."""


class EndingError(Exception):
    """The engine is stopping: nothing is stored any more, and whoever asks has to come again."""


class Engine:
    """`start`, then `accept` as often as you like, then `close`. One per process at a time."""

    def __init__(  # noqa: PLR0913 (each is somebody whom the engine tells something)
        self,
        settings: EngineSettings,
        *,
        perform: Perform,
        apologize: Apologize,
        observe: Observe,
        count_rescued: Callable[[int], None],
        told: Told = not_told,
    ) -> None:
        self._told = told
        self._settings = settings
        self._callbacks = (perform, apologize, observe)
        self._count_rescued = count_rescued
        self._lock: AliveLock | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._worker: Any = None
        self._intake: Any = None

    async def start(self) -> None:
        """Take up what the last process left, and begin to work.

        Raises:
            ExecutorInUseError: another process with this executor id is alive.
        """
        lock = lock_for(self._settings.database_url, self._settings.executor_id)
        if not await _taken(lock):
            await lock.release()  # its connection, if it has one
            raise ExecutorInUseError(
                f"another process runs with executor id {self._settings.executor_id!r} on this database;"
                " stop it first, or give this one an MLM_EXECUTOR_ID of its own"
            )
        self._lock = lock
        try:
            await self._launch()
        except BaseException:
            await lock.release()
            raise

    async def _launch(self) -> None:
        from dbos import DBOS  # noqa: PLC0415 (see above)

        from bot.engine import workflows  # noqa: PLC0415
        from bot.engine.collector import collect_finished  # noqa: PLC0415
        from bot.engine.intake import Intake  # noqa: PLC0415
        from bot.engine.rescue import Rescuer  # noqa: PLC0415

        perform, apologize, observe = self._callbacks
        self._worker = workflows.Worker(perform, apologize, observe)
        workflows.install(self._worker)
        await asyncio.to_thread(write_ahead, self._settings.database_url)
        lend_clock()
        DBOS(config=dbos_config(self._settings))  # type: ignore[arg-type]
        DBOS.launch()  # on this loop, which is where it will run our coroutines
        await asyncio.to_thread(index, self._settings.database_url)
        await self._register_queues()
        self._intake = Intake(self._settings.database_url, like=dbos_config(self._settings))
        assert self._lock is not None  # noqa: S101 (start() took it)
        rescuer = Rescuer(
            self._settings.database_url,
            self._settings.executor_id,
            self._lock,
            self._count_rescued,
            self._settings.orphan_after_s,
        )
        self._loops = [
            asyncio.create_task(_every(self._settings.rescue_every_s, rescuer.round, self._told)),
            asyncio.create_task(_every(COLLECT_EVERY_S, collect_finished, self._told, first_s=COLLECT_FIRST_S)),
        ]

    async def _register_queues(self) -> None:
        from dbos import DBOS  # noqa: PLC0415

        always: Any = {"polling_interval_sec": self._settings.polling_s, "on_conflict": "always_update"}
        await DBOS.register_queue_async(ARRIVALS, partition_concurrency=4, worker_concurrency=20, **always)
        await DBOS.register_queue_async(JOBS, partition_concurrency=2, worker_concurrency=8, **always)
        await DBOS.register_queue_async(PULLS, partition_concurrency=1, worker_concurrency=20, **always)

    async def accept(self, task: Task) -> bool:
        """Return once the task is durable: True if it is new, False if its key was known.

        A known task that had failed is taken up again: that is what a redelivery is for.

        Raises:
            EndingError: the engine is stopping.
            What the database raises when it cannot be had.
        """
        if await self._intake.store(task):
            return True
        await self._revive(task_id(task))
        return False

    async def _revive(self, workflow_id: str) -> None:
        from dbos import DBOS  # noqa: PLC0415

        known = await DBOS.list_workflows_async(workflow_ids=[workflow_id], load_output=False)
        family = [*known, *await _children(workflow_id)]
        for row in family:
            if row.status in FAILED:
                task = stored_task(row.input)
                if task is None:
                    log.error("engine.unreadable", workflow=row.workflow_id, why="to be taken up again")
                    continue
                # Its row may have lost its place: dbos takes it out of its queue when it is set aside or cancelled.
                spot = place(task)
                await DBOS.rewind_workflow_async(
                    row.workflow_id, start_step=1, queue_name=spot.queue, queue_partition_key=spot.partition
                )
                log.info("task.revived", workflow=row.workflow_id)

    async def known(self, tasks: Sequence[Task]) -> set[str]:
        """Return the keys of those that are or were here; a task is forgotten 8 days after its end."""
        from dbos import DBOS  # noqa: PLC0415

        keys = {task_id(task): task.key for task in tasks}
        ids = list(keys)
        found: set[str] = set()
        for start in range(0, len(ids), COUNT_LIMIT):
            rows = await DBOS.list_workflows_async(
                workflow_ids=ids[start : start + COUNT_LIMIT], load_input=False, load_output=False
            )
            found |= {keys[row.workflow_id] for row in rows}
        return found

    async def check(self) -> None:
        """Return if the engine can reach its database; raise its error if not."""
        from dbos import DBOS  # noqa: PLC0415

        await DBOS.list_workflows_async(limit=1, load_input=False, load_output=False)

    async def depths(self) -> dict[str, int]:
        """Return how many tasks are in each waiting state, counted up to 1000."""
        from dbos import DBOS  # noqa: PLC0415

        counts = {}
        for state in WAITING:  # one by one: all at once would be looked for among the finished ones, oldest first
            rows = await DBOS.list_workflows_async(status=state, limit=COUNT_LIMIT, load_input=False, load_output=False)
            counts[state] = len(rows)
        return counts

    async def hurry(self, concerns: Callable[[Task], bool]) -> int:
        """Start soon, one after the other, what was put off and concerns something that is over; return how many."""
        from bot.engine.hurry import hurry  # noqa: PLC0415 (see above)

        return await hurry(concerns)

    def turn_away(self) -> None:
        """Accept nothing from now on: whoever waits or comes gets an `EndingError` at once."""
        if self._intake is not None:
            self._intake.turn_away()

    async def close(self) -> None:
        """Let running tasks finish for `grace_s`, then stop them where they are: the next start takes them up."""
        for loop_task in self._loops:
            loop_task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._intake is not None:
            await self._intake.close()
        if self._worker is not None:
            await self._drain()
        if self._lock is not None:
            await self._lock.release()

    async def _drain(self) -> None:
        from dbos import DBOS  # noqa: PLC0415

        running: set[asyncio.Task[Any]] = self._worker.running
        # dbos waits a whole second even for nothing, and it must be told to stop before anything is waited for.
        patience_s = round(self._settings.grace_s) + 2 if running else 0
        self._worker.closing = not running
        with ThreadPoolExecutor(1) as own:
            stopping = asyncio.get_running_loop().run_in_executor(
                own, lambda: DBOS.destroy(workflow_completion_timeout_sec=patience_s)
            )
            await _finish(running, self._settings.grace_s)
            self._worker.closing = True
            for task in tuple(running):
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await stopping
        # dbos made its own pool, which is shut down now, the loop's default one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))


async def _children(workflow_id: str) -> list[Any]:
    from dbos import DBOS  # noqa: PLC0415

    found: list[Any] = []
    parents = [workflow_id]
    while parents:
        rows = [
            row
            for parent in parents
            for row in await DBOS.list_workflows_async(parent_workflow_id=parent, load_output=False)
        ]
        found += rows
        parents = [row.workflow_id for row in rows]
    return found


async def _finish(running: set[asyncio.Task[Any]], grace_s: float) -> None:
    with contextlib.suppress(TimeoutError):  # the rest is stopped, and taken up by the next start
        async with asyncio.timeout(grace_s):
            while running:
                await asyncio.wait(tuple(running))


async def _every(
    pause_s: float, action: Callable[[], Awaitable[None]], told: Told, *, first_s: float | None = None
) -> None:
    """Do something again and again; a round that fails is told, and tried again after the next pause."""
    wait_s = pause_s if first_s is None else first_s
    while True:
        await asyncio.sleep(wait_s)
        wait_s = pause_s
        try:
            await action()
        except Exception as error:
            if not await told(error):
                log.exception("engine.round_failed", action=getattr(action, "__name__", repr(action)))
