"""Deliveries go first: while many wait to be stored, work that is stored already starts one piece at a time.

GitHub waits ten seconds for an answer and never asks again by itself; work that is in the database can wait. Only
deliveries whose signature was good count, so nobody slows the work down by opening connections.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

#: Deliveries that may wait to be stored without the work being held back: each costs a few milliseconds.
MANY = 8
#: However many wait, one piece of work starts in that time, in seconds: a crowd that never ends does not stop the work.
TURN_S = 0.1


class Precedence:
    """One per process: `with storing()` around each delivery, `await give_way()` before each piece of work."""

    def __init__(self, *, many: int = MANY, turn_s: float = TURN_S) -> None:
        self._many = many
        self._turn_s = turn_s
        self._storing = 0
        self._calm = asyncio.Event()
        self._calm.set()
        self._turn = asyncio.Lock()

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """Count one delivery as waiting."""
        self._storing += 1
        if self._storing > self._many:
            self._calm.clear()
        try:
            yield
        finally:
            self._storing -= 1
            if self._storing <= self._many:
                self._calm.set()

    async def give_way(self) -> None:
        """Return when there is no crowd, or when it is this piece's turn all the same; first come, first served."""
        async with self._turn:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._turn_s):
                    await self._calm.wait()
