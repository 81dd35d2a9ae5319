"""The first contact with GitHub, made in the background: while GitHub is away, the port and the probes are open."""

from __future__ import annotations

import asyncio

import structlog

from bot.contexts import Contexts
from bot.github.weather import reason
from handlers.context import RateLimitedError

log = structlog.get_logger()

#: Seconds before GitHub is tried again when it could not be reached; doubled each time up to the last.
RECONNECT_S = (1.0, 30.0)


class Contact:
    """Asks GitHub who we are until it answers: `begin`, and `end` when the service stops.

    `why` says for an operator why there is no contact; it holds neither addresses nor secrets.
    """

    def __init__(self, contexts: Contexts) -> None:
        self.why = "not reached yet: the first call is on its way"
        self._contexts = contexts
        self._first: asyncio.Task[bool] | None = None
        self._later: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Make the first call, and go on if it fails."""
        self._first = asyncio.create_task(self._try())
        self._later = asyncio.create_task(self._keep_trying(self._first))

    async def first(self) -> bool:
        """Wait for the end of the first call: True if GitHub answered, False if it could not be reached.

        Raises:
            RefusedError: GitHub does not accept the App's id or its key.
        """
        if self._first is None:
            raise RuntimeError("the contact has not begun")
        return await asyncio.shield(self._first)

    async def end(self) -> None:
        """Stop trying."""
        tasks = [task for task in (self._first, self._later) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _try(self) -> bool:
        """Learn from GitHub who we are; False if it cannot be reached now, which must not end the start."""
        try:
            await self._contexts.gateway.start()
        except RateLimitedError as error:
            if not self._contexts.tried.is_set():  # once: that the trouble goes on is told by its end
                log.warning("github.not_connected", why=str(error), deliveries="503")
            self.why = f"not reached yet: {reason(error.__cause__)}"
            return False
        finally:
            self._contexts.tried.set()
        self._contexts.connected = True
        log.info("github.connected", app=self._contexts.gateway.app.slug)
        return True

    async def _keep_trying(self, first: asyncio.Task[bool]) -> None:
        pause_s, longest_s = RECONNECT_S
        await asyncio.wait([first])
        if first.cancelled() or first.exception() is not None:
            return  # refused: whoever waits for the first call is told
        while not self._contexts.connected:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, longest_s)
            await self._try()
