"""The sweep for missed deliveries: what it costs the event loop, and what it says when it is kept from its work."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.typing import EventDict

from bot.engine.sweep import FailedAttempt, Means, Rounds, keep_sweeping
from handlers.context import RateLimitedError, RefusedError, Repo, Task

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Attempt:
    id: int = 1
    guid: str = "guid-1"
    delivered_at: datetime = datetime(2026, 12, 1, 11, tzinfo=UTC)
    event: str = "issue_comment"
    action: str | None = "created"
    repository_id: int | None = 5


@dataclass
class App:
    """What GitHub and this process tell a sweep; `trouble` is raised by the listing until it is None."""

    trouble: Exception | None = None
    listed: int = 0
    redelivered: list[int] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    memory: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    looked_in: list[int] = field(default_factory=list)

    async def failed_deliveries(self, *, since: datetime) -> Sequence[FailedAttempt]:
        assert since < NOON
        self.listed += 1
        if self.trouble is not None:
            raise self.trouble
        return [Attempt()]

    async def payload(self, attempt_id: int) -> Mapping[str, Any]:
        return {"of": attempt_id}

    async def redeliver(self, attempt_id: int) -> None:
        self.redelivered.append(attempt_id)

    async def repositories(self) -> Sequence[Repo]:
        return []

    async def recall(self, key: str) -> Any:
        return self.memory.get(key)

    async def remember(self, key: str, value: Mapping[str, Any]) -> None:
        self.memory[key] = value

    async def take(self) -> bool:
        return True

    async def release(self) -> None: ...

    def relevant(self, _event: str, _guid: str, _payload: Mapping[str, Any]) -> bool:
        self.looked_in.append(threading.get_ident())
        return True

    def means(self) -> Means:
        async def known(_: object) -> set[str]:
            return set()

        async def accept(_: Task) -> bool:
            return True

        here: Any = self
        return Means(
            look=lambda: self,
            known=known,
            accept=accept,
            wanted=lambda *_: True,
            relevant=self.relevant,
            serves=lambda *_: True,
            memory=here,
            lock=lambda: here,
            clock=lambda: NOON,
            count=lambda what, number: self.counted.update({what: number}),
        )


async def sweep_until(app: App, true: Callable[[], bool]) -> None:
    sweeping = asyncio.create_task(keep_sweeping(app.means(), Rounds(0.01, first_s=0.01, pause_s=0.0), lambda: True))
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)
    sweeping.cancel()
    with suppress(asyncio.CancelledError):
        await sweeping


async def test_a_missed_delivery_is_looked_into_off_the_loop() -> None:
    """The Markdown of a hostile comment takes half a second."""
    app = App()
    await sweep_until(app, lambda: bool(app.redelivered))
    assert app.looked_in != []
    assert threading.get_ident() not in app.looked_in


@pytest.mark.parametrize(
    "trouble",
    [RefusedError("Not Found", status=404), RateLimitedError("the App's key is refused", after_s=30.0)],
    ids=str,
)
async def test_what_keeps_us_from_sweeping_is_one_line_and_its_end_another(
    said: list[EventDict], trouble: Exception
) -> None:
    app = App(trouble)
    await sweep_until(app, lambda: app.listed >= 4)
    assert [(line["event"], line["why"]) for line in said] == [("sweep.put_off", str(trouble))]
    assert app.counted["put_off"] >= 3


async def test_a_sweep_goes_on_when_it_may_again(said: list[EventDict]) -> None:
    app = App(RefusedError("Not Found", status=404))

    def mended() -> bool:
        if app.counted["put_off"] >= 2:
            app.trouble = None
        return bool(app.redelivered) and app.listed > app.counted["put_off"] + 1

    await sweep_until(app, mended)
    events = [line["event"] for line in said]
    assert events.count("sweep.put_off") == events.count("sweep.goes_on") == 1
    (over,) = (line for line in said if line["event"] == "sweep.goes_on")
    assert over["rounds_missed"] == app.counted["put_off"]


async def test_a_bug_of_ours_is_told_with_its_traceback_each_time(said: list[EventDict]) -> None:
    app = App(KeyError("surprise"))
    await sweep_until(app, lambda: app.listed >= 3)
    assert {line["event"] for line in said} == {"sweep.failed"}
    assert len(said) >= 2
