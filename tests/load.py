"""Sends signed deliveries over a number of connections, and keeps how long each answer took."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

Json = dict[str, Any]


@dataclass
class Answers:
    """What came back; times in seconds."""

    took_s: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def per_s(self) -> float:
        return len(self.took_s) / self.seconds

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.took_s)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Target:
    """Who is sent to."""

    url: str
    secret: str


async def send(  # noqa: PLR0913 (each is a size of the load)
    target: Target, event: str, bodies: Callable[[], bytes], *, connections: int, seconds: float, most: int = 10**9
) -> Answers:
    """Send for `seconds`, or until `most` are sent; a connection sends its next delivery when it has its answer."""
    answers = Answers()
    started = time.perf_counter()
    left = iter(range(most))
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def line() -> None:
            while time.perf_counter() - started < seconds and next(left, None) is not None:
                body = bodies()
                at = time.perf_counter()
                async with session.post(
                    f"{target.url}/webhook", data=body, headers=headers(target, event, body)
                ) as got:
                    await got.read()
                    answers.statuses[got.status] += 1
                answers.took_s.append(time.perf_counter() - at)

        await asyncio.gather(*(line() for _ in range(connections)))
    answers.seconds = time.perf_counter() - started
    return answers


def headers(target: Target, event: str, body: bytes) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/load",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.digest(target.secret.encode(), body, "sha256").hex(),
    }


def varied(payload: Json, change: Callable[[Json, int], None]) -> Callable[[], bytes]:
    """Return a source of bodies: the payload, changed a little for each number."""

    def numbers() -> Iterator[bytes]:
        number = 0
        while True:
            change(payload, number)
            yield json.dumps(payload).encode()
            number += 1

    source = numbers()
    return lambda: next(source)
