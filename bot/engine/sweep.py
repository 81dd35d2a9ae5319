"""What was missed while the bot was away: failed deliveries are asked for again, then the open pull requests are read.

GitHub never repeats a failed delivery by itself, and forgets it after 3 days (7 on Enterprise Server). What it has
forgotten, or has lost itself, only shows in what there is: newest runs and labels (handlers/rescan.py).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from bot.engine.locks import AliveLock, Held
from bot.store.watch import Told, not_told
from handlers.context import RateLimitedError, RefusedError, Repo, Store, Task

log = structlog.get_logger()

#: Nothing is listed for longer; beyond it a delivery is stale even where GitHub kept it.
LOOK_BACK = timedelta(days=7)
#: A delivery that fails each time that it comes is no longer asked for.
MOST_REQUESTS = 5
#: Payloads that are read at once.
LOOKS_TOGETHER = 8
#: Deliveries about one job of a run.
ONE_JOB = frozenset({"workflow_job", "check_run"})
#: An attempt younger than this may still be on its way to be answered by another process.
SETTLED_S = 2.0
#: Looks are spread, so that a thousand repositories are not all read in the same second.
RESCAN_STEP_S = 0.2


class FailedAttempt(Protocol):
    """One failed try of GitHub's to hand over a delivery; a later one of the same `guid` has a higher `id`."""

    @property
    def id(self) -> int: ...
    @property
    def guid(self) -> str: ...
    @property
    def delivered_at(self) -> datetime: ...
    @property
    def event(self) -> str: ...
    @property
    def action(self) -> str | None: ...
    @property
    def repository_id(self) -> int | None: ...


class Look(Protocol):
    """What GitHub tells the App itself (bot/github/survey.py)."""

    async def failed_deliveries(self, *, since: datetime) -> Sequence[FailedAttempt]: ...
    async def payload(self, attempt_id: int) -> Mapping[str, Any]: ...
    async def redeliver(self, attempt_id: int) -> None: ...
    async def repositories(self) -> Sequence[Repo]: ...


@dataclass(frozen=True)
class Means:
    """What a sweep works with.

    `known` tells which of these (repository id, delivery GUID) the engine has; `wanted` which kinds of events (event,
    action) may need work, `relevant` whether a payload does; `memory` is shared by all processes.
    """

    look: Callable[[], Look]
    known: Callable[[Sequence[tuple[int, str]]], Awaitable[set[str]]]
    accept: Callable[[Task], Awaitable[bool]]
    wanted: Callable[[str, str], bool]
    relevant: Callable[[str, str, Mapping[str, Any]], bool]
    serves: Callable[[int, str], bool]
    memory: Store
    lock: Callable[[], AliveLock]
    clock: Callable[[], datetime]
    count: Callable[[str, int], None]
    told: Told = not_told


@dataclass(frozen=True)
class Rounds:
    """When the sweeps happen, in seconds.

    `first_s`: until our own address answers. `window_s`: at most one look at a repository in that time, however often
    processes start. `pause_s`: between two requests that change something, as GitHub asks for.
    """

    every_s: float
    first_s: float = 2.0
    rescan_every_s: float = 6 * 3600.0
    window_s: float = 600.0
    pause_s: float = 1.0


class Sweeper:
    """`redeliver` and `rescan` can be called at any time, in any number of processes: one does it, once."""

    def __init__(self, means: Means, rounds: Rounds) -> None:
        self._means = means
        self._rounds = rounds

    async def redeliver(self) -> int:
        """Ask for each relevant delivery again that failed and never arrived; return for how many."""
        async with Held(self._means.lock()) as lock:
            if not lock.ours:
                return 0
            missed = await self._missed()
            asked: list[FailedAttempt] = []
            for start in range(0, len(missed), LOOKS_TOGETHER):
                batch = missed[start : start + LOOKS_TOGETHER]
                needed = await asyncio.gather(*(self._needs_work(attempt) for attempt in batch))
                for attempt, needs in zip(batch, needed, strict=True):
                    asked += [attempt] if await self._ask_for(attempt, needed=needs) else []
        if asked:
            log.warning("sweep.redelivered", deliveries=len(asked), oldest=asked[0].delivered_at.isoformat())
        return len(asked)

    async def _missed(self) -> list[FailedAttempt]:
        """Return the newest failed attempt of each delivery that never arrived, in the order of the events."""
        means = self._means
        now = means.clock()
        failed = await means.look().failed_deliveries(since=now - LOOK_BACK)
        newest: dict[str, FailedAttempt] = {}
        for attempt in failed:
            if attempt.repository_id is not None and means.wanted(attempt.event, attempt.action or ""):
                newest.setdefault(attempt.guid, attempt)
        # One that lies ahead is old: our clock is behind GitHub's.
        ages = {guid: (now - one.delivered_at).total_seconds() for guid, one in newest.items()}
        settled = [one for guid, one in newest.items() if not 0 <= ages[guid] < SETTLED_S]
        arrived = await means.known([(one.repository_id or 0, one.guid) for one in settled])
        absent = [one for one in settled if one.guid not in arrived]
        # A run's end tells of its jobs, too; what people have said has nobody else to tell of it.
        absent.sort(key=lambda one: (one.event in ONE_JOB, one.id))
        return [one for one in absent if await self._may_ask_for(one)]

    async def _may_ask_for(self, attempt: FailedAttempt) -> bool:
        """Once for each try that failed: what was asked for and has not failed again since has arrived."""
        asked = await self._means.memory.recall(_asked_key(attempt.guid)) or {"times": 0, "attempt": 0}
        return int(asked["times"]) < MOST_REQUESTS and attempt.id > int(asked["attempt"])

    async def _needs_work(self, attempt: FailedAttempt) -> bool:
        try:
            payload = await self._means.look().payload(attempt.id)
        except RefusedError as error:
            log.warning("sweep.unread", delivery=attempt.guid, status=error.status, why=error.message)
            return False
        # The Markdown of a comment of the greatest length can take half a second.
        return await asyncio.to_thread(self._means.relevant, attempt.event, attempt.guid, payload)

    async def _ask_for(self, attempt: FailedAttempt, *, needed: bool) -> bool:
        """Have it sent again if it needs work, and remember that it was looked at."""
        key = _asked_key(attempt.guid)
        asked = await self._means.memory.recall(key) or {"times": 0}
        try:
            if needed:
                await self._means.look().redeliver(attempt.id)
        except RefusedError as error:
            needed = False
            log.warning("sweep.refused", delivery=attempt.guid, status=error.status, why=error.message)
        note: dict[str, Any] = {"times": int(asked["times"]) + 1, "attempt": attempt.id}
        await self._means.memory.remember(key, note)
        if needed:
            self._means.count("redelivered", 1)
            await asyncio.sleep(self._rounds.pause_s)
        return needed

    async def rescan(self) -> int:
        """Have every repository read for what no delivery told; return how many are."""
        window = math.floor(self._means.clock().timestamp() / self._rounds.window_s)
        found = await self._means.look().repositories()
        repos = [repo for repo in found if self._means.serves(repo.id, repo.full_name)]
        new = 0
        for number, repo in enumerate(repos):
            task = Task("rescan", repo, key=str(window))
            new += await self._means.accept(replace(task, delay_s=number * RESCAN_STEP_S))
        self._means.count("rescanned", new)
        log.info("sweep.rescan", repositories=len(repos), new=new)
        return new


def _asked_key(guid: str) -> str:
    return f"redelivered-{guid}"


class _Hindrance:
    """What keeps us from sweeping: told when it begins and when it is over, and counted each round."""

    def __init__(self, count: Callable[[str, int], None]) -> None:
        self._count = count
        self._rounds = 0

    def goes_on(self, error: RateLimitedError | RefusedError) -> None:
        self._rounds += 1
        self._count("put_off", 1)
        if self._rounds == 1:
            log.warning("sweep.put_off", why=str(error))

    def ends(self) -> None:
        if self._rounds:
            log.info("sweep.goes_on", rounds_missed=self._rounds)
        self._rounds = 0


async def keep_sweeping(means: Means, rounds: Rounds, connected: Callable[[], bool]) -> None:
    """Sweep now and then; a round that fails is told, and the next one comes anyway."""
    sweeper = Sweeper(means, rounds)
    hindrance = _Hindrance(means.count)
    loop = asyncio.get_running_loop()
    rescan_at = loop.time()
    pause_s = rounds.first_s
    while True:
        await asyncio.sleep(pause_s)
        pause_s = rounds.every_s if connected() else rounds.first_s
        if not connected():
            continue
        try:
            await sweeper.redeliver()
            if loop.time() >= rescan_at:
                await sweeper.rescan()
                rescan_at = loop.time() + rounds.rescan_every_s
        except (RateLimitedError, RefusedError) as error:
            hindrance.goes_on(error)
        except Exception as error:
            if not await means.told(error):
                log.exception("sweep.failed")
        else:
            hindrance.ends()
