"""Carries the simulated GitHub's deliveries as badly as the real one may: out of order, several at once, some twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Self

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Delivery


@dataclass
class Carried:
    """What was sent, and what became of it."""

    deliveries: int = 0
    twice: int = 0
    accepted: int = 0
    failed: int = 0
    by_event: dict[str, int] = field(default_factory=dict)


class Postman:
    """`async with Postman(github, chance) as post`: from then on events leave through here.

    Deliveries wait until `window` of them are there (or for a moment), are shuffled, and one in ten is sent twice.
    """

    def __init__(
        self, github: SimulatedGitHub, chance: random.Random, *, window: int = 40, together: int = 6, twice: float = 0.1
    ) -> None:
        self._github = github
        self._chance = chance
        self._window = window
        self._together = asyncio.Semaphore(together)
        self._twice = twice
        self._held: list[Delivery] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._work: asyncio.Task[None] | None = None
        self._open = asyncio.Event()
        self._post = github.parts.hooks.send
        self.carried = Carried()

    async def __aenter__(self) -> Self:
        async def hold(delivery: Delivery, *, headers: dict[str, str] | None = None) -> int:
            assert headers is None
            self._held.append(delivery)
            return 0

        self._github.parts.hooks.send = hold  # type: ignore[method-assign]
        self._work = asyncio.create_task(self._deliver())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._work is not None
        self._work.cancel()
        await asyncio.gather(self._work, *self._sending, return_exceptions=True)
        self._github.parts.hooks.send = self._post  # type: ignore[method-assign]

    def open(self) -> None:
        """Begin to send; until then everything is held."""
        self._open.set()

    @property
    def at_rest(self) -> bool:
        return not self._held and not self._sending

    async def _deliver(self) -> None:
        await self._open.wait()
        while True:
            if len(self._held) < self._window:
                await asyncio.sleep(0.05)
            now, self._held = self._held[: self._window], self._held[self._window :]
            now += [one for one in now if self._chance.random() < self._twice]
            self._chance.shuffle(now)
            for delivery in now:
                await self._together.acquire()
                sending = asyncio.create_task(self._send(delivery))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)

    async def _send(self, delivery: Delivery) -> None:
        again = delivery.status_code != 0
        with contextlib.ExitStack() as stack:
            stack.callback(self._together.release)
            entry = self._again(delivery) if again else delivery
            status = await self._post(entry)
            count = self.carried
            count.deliveries += 1
            count.twice += again
            count.accepted += 200 <= status < 300
            count.failed += status >= 300
            count.by_event[delivery.event] = count.by_event.get(delivery.event, 0) + 1

    def _again(self, delivery: Delivery) -> Delivery:
        hooks, app = self._github.parts.hooks, self._github.app
        return hooks.record(app, delivery.event, delivery.payload, guid=delivery.guid, redelivery=True)
