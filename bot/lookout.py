"""While GitHub is unwell, it is asked how it is; once it is well again, the work that was put off is hurried.

Without that, work that was put off for ten minutes would also wait for ten minutes after GitHub is back.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.engine.adapter import Engine
from bot.github.gateway import Gateway
from bot.github.tokens import THE_APP, installation_name
from bot.github.weather import EVERYBODY, THE_STORAGE, Trouble
from bot.store.watch import Told
from handlers.context import RateLimitedError, RefusedError, Task

log = structlog.get_logger()

#: Once work was hurried, it is not hurried again for so long, in seconds: each time twice as long, at last an hour.
#: Otherwise a GitHub that only seems to be well would have the work tried, and at last given up, in no time.
REST_S = (60.0, 3600.0)

#: What no longer is only shows to whoever asks; a limit ends by itself, and an installation's suspension is told of.
ASKED_ABOUT: tuple[tuple[Trouble, str], ...] = (("unreachable", EVERYBODY), ("locked_out", THE_APP))


class Lookout:
    """Two coroutines to be run for ever: `keep_asking` and `keep_hurrying`."""

    def __init__(self, gateway: Gateway, engine: Engine, *, every_s: float, told: Told) -> None:
        """Ask every so many seconds, while there is a reason to."""
        self._gateway = gateway
        self._engine = engine
        self._every_s = every_s
        self._told = told
        self._over: asyncio.Queue[str] = asyncio.Queue()
        self._rests: dict[str, tuple[float, float]] = {}  # who -> until when, and how long that was
        gateway.weather.tell_when_over(self._note)

    def _note(self, _kind: Trouble, who: str) -> None:
        self._over.put_nowait(who)

    async def keep_asking(self) -> None:
        """Find out that a trouble is over though all work waits."""
        while True:
            await asyncio.sleep(self._every_s)
            if any(self._gateway.weather.lasts(*trouble) for trouble in ASKED_ABOUT):
                try:
                    await self._gateway.ask()
                except (RateLimitedError, RefusedError) as error:
                    log.debug("lookout.still", why=str(error))

    async def keep_hurrying(self) -> None:
        """Hurry the work of those whose trouble is over."""
        while True:
            who = await self._over.get()
            if not self._may_hurry(who):
                continue
            try:
                await self._engine.hurry(lambda task, who=who: _concerns(task, who))  # type: ignore[misc]
            except Exception as error:
                if not await self._told(error):
                    log.exception("lookout.failed")

    def _may_hurry(self, who: str) -> bool:
        now_s = asyncio.get_running_loop().time()
        shortest_s, longest_s = REST_S
        until_s, rest_s = self._rests.get(who, (now_s, 0.0))
        if now_s < until_s:
            return False
        # Whoever was well for as long again begins anew.
        rest_s = min(2 * rest_s, longest_s) if rest_s and now_s < until_s + rest_s else shortest_s
        self._rests = {one: rest for one, rest in self._rests.items() if now_s < rest[0] + rest[1]}
        self._rests[who] = now_s + rest_s, rest_s
        return True


def _concerns(task: Task, who: str) -> bool:
    return who in {EVERYBODY, THE_STORAGE, THE_APP, installation_name(task.repo.installation_id)}
