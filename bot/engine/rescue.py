"""Nothing stays behind: work of dead processes is taken over, and so is work that this process lost sight of.

A process is dead when its lock (bot/engine/locks.py) can be taken in two rounds running. dbos leaves such rows PENDING
until the same executor id starts again, as it leaves a row whose coroutine died of a database error (a full disk).
What was started too often is given up as any other work is, with a word to whoever waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from cachetools import LRUCache
from dbos import DBOS
from dbos._dbos import _get_dbos_instance  # the list of what runs in this process has no public name

from bot.engine.documents import stored_task
from bot.engine.locks import AliveLock, Held, lock_for
from bot.engine.workflows import give_up

log = structlog.get_logger()

#: Rounds in which a lock was free before its process counts as dead: one that is just starting takes it in between.
GRACE_ROUNDS = 2
#: Restarts of one lost workflow by this process, in some three hours: each time it is left alone for twice as long.
#: Resuming resets the engine's own count, which stops poisonous work.
MAX_RESUMES = 20
LONGEST_LOST_S = 600.0
#: Workflows whose restarts are counted; beyond that the oldest begins anew.
MOST_COUNTED = 10_000
#: dbos sets work aside, without a word, that was in hand when so many processes ended (`MAX_RECOVERIES`).
SET_ASIDE = "MAX_RECOVERY_ATTEMPTS_EXCEEDED"
#: Names the lock of the one process that gives up what was set aside.
UNDERTAKER = "undertaker"
#: Clocks of two hosts differ by less, in seconds: what waits longer than its own pause waits for a wrong clock.
CLOCK_SKEW_S = 30.0
#: Delayed rows that one round looks at.
MOST_LOOKED_AT = 1000


def running_here() -> frozenset[str]:
    """Return the ids of the workflows that run in this process."""
    return frozenset(_get_dbos_instance()._active_workflows_set.activeList())  # noqa: SLF001 (no public name)


async def _wake() -> None:
    """Give work that waits its own pause from now on where the clock was set: its moment has moved away."""
    now_ms = time.time() * 1000
    waiting = await DBOS.list_workflows_async(status="DELAYED", limit=MOST_LOOKED_AT, load_input=False)
    far = {row.workflow_id: ((row.delay_until_epoch_ms or 0) - now_ms) / 1000 for row in waiting}
    far = {one: ahead_s for one, ahead_s in far.items() if ahead_s > CLOCK_SKEW_S}
    rows = await DBOS.list_workflows_async(workflow_ids=list(far)) if far else []
    for row in rows:
        task = stored_task(row.input)
        pause_s = task.delay_s if task else far[row.workflow_id]
        if far[row.workflow_id] > pause_s + CLOCK_SKEW_S:
            await DBOS.set_workflow_delay_async(row.workflow_id, delay_seconds=max(pause_s, 0.1))
            log.warning("engine.clock_was_set", workflow=row.workflow_id, pause_s=round(pause_s, 1))


async def _set_aside() -> list[str]:
    rows = await DBOS.list_workflows_async(status=SET_ASIDE, limit=MOST_LOOKED_AT, load_input=False, load_output=False)
    return [row.workflow_id for row in rows]


async def _bury(ids: Sequence[str], *, why: str) -> None:
    """Give work up. Its row is closed last: should we end before that, it is told once more, and not never."""
    for row in await DBOS.list_workflows_async(workflow_ids=list(ids), load_output=False) if ids else []:
        task = stored_task(row.input)
        if task:
            await give_up(task, why=why)
        else:
            log.error("engine.unreadable", workflow=row.workflow_id, why=why)
        await DBOS.cancel_workflow_async(row.workflow_id)


@dataclass
class Rescuer:
    """One per process; `round` is called again and again."""

    database_url: str
    executor_id: str
    lock: AliveLock
    count: Callable[[int], None]
    orphan_after_s: float = 20.0
    _free_rounds: dict[str, int] = field(default_factory=dict)
    _lost_since: dict[str, float] = field(default_factory=dict)
    _resumed: LRUCache[str, int] = field(default_factory=lambda: LRUCache(MOST_COUNTED))

    async def round(self) -> None:
        """Look once."""
        if not await self.lock.take():
            # A broken connection let go of it, and another process took it: it will take our work over, too.
            log.error("engine.executor_id_taken", executor_id=self.executor_id)
        pending: dict[str, dict[str, str]] = {}
        for row in await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False):
            pending.setdefault(row.executor_id or "", {})[row.workflow_id] = row.queue_name or ""
        await self._resume_lost(pending.pop(self.executor_id, {}))
        await self._bury_what_was_set_aside()
        await _wake()
        self._free_rounds = {one: rounds for one, rounds in self._free_rounds.items() if one in pending}
        for executor_id in pending:
            await self._take_over(executor_id)

    async def _take_over(self, executor_id: str) -> None:
        # The lock is held while its work is taken over, so only one rescuer does it.
        async with Held(lock_for(self.database_url, executor_id)) as lock:
            rounds = self._free_rounds.get(executor_id, 0) + 1 if lock.ours else 0
            self._free_rounds[executor_id] = rounds
            if rounds < GRACE_ROUNDS:
                return
            # Unlike the public resume_workflows this keeps the count of starts: work that kills processes ends.
            handles = await asyncio.to_thread(DBOS._recover_pending_workflows, [executor_id])  # noqa: SLF001
        self._tell(len(handles), dead=executor_id)

    async def _resume_lost(self, mine: dict[str, str]) -> None:
        active = running_here()
        now = asyncio.get_running_loop().time()
        self._lost_since = {one: self._lost_since.get(one, now) for one in mine if one not in active}
        lost = [one for one, since in self._lost_since.items() if now - since >= self._patience_s(one)]
        again = [one for one in lost if self._resumed.get(one, 0) < MAX_RESUMES]
        for queue in {mine[one] for one in again}:
            ids = [one for one in again if mine[one] == queue]
            await DBOS.resume_workflows_async(ids, queue_name=queue or None)
        for one in again:
            self._resumed[one] = self._resumed.get(one, 0) + 1
            del self._lost_since[one]
        self._tell(len(again), dead=None)
        hopeless = [one for one in lost if one not in again]
        await _bury(hopeless, why=f"lost sight of {MAX_RESUMES + 1} times")
        for one in hopeless:
            self._resumed.pop(one, None)  # a redelivery takes it up again

    def _patience_s(self, lost: str) -> float:
        """Return how long it must have been lost: each restart may meet the same trouble of the database."""
        longest_s = max(LONGEST_LOST_S, self.orphan_after_s)
        return min(self.orphan_after_s * 2.0 ** self._resumed.get(lost, 0), longest_s)

    async def _bury_what_was_set_aside(self) -> None:
        if not await _set_aside():
            return
        async with Held(lock_for(self.database_url, UNDERTAKER)) as lock:
            if lock.ours:  # and nobody else has buried them meanwhile
                await _bury(await _set_aside(), why="in hand each time that a process ended")

    def _tell(self, number: int, *, dead: str | None) -> None:
        if number:
            self.count(number)
            log.warning("engine.rescued", tasks=number, dead_executor=dead)
