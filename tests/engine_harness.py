"""An engine on a SQLite file for tests, with what it said and did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bot.engine.adapter import Engine
from bot.engine.settings import EngineSettings
from handlers.context import Repo, Task

#: `bot.engine.workflows.APOLOGY`, whose module may be loaded by a running engine only.
APOLOGY = "apology"

REPO = Repo(id=5, full_name="o/r", installation_id=9)
Perform = Callable[[Task], Awaitable[Sequence[Task]]]


def task(key: str, *, name: str = "delivery", pull: int | None = None, **data: object) -> Task:
    return Task(name=name, repo=REPO, key=key, data=data, pull=pull)


class Seen:
    """What the engine said and did."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []
        self.given_up: list[str] = []
        self.rescued = 0

    def observe(self, done: Task, outcome: str, _took_s: float) -> None:
        if done.name != APOLOGY:
            self.outcomes.append((done.key, outcome))

    async def apologize(self, failed: Task) -> None:
        self.given_up.append(failed.key)

    def count(self, number: int) -> None:
        self.rescued += number


@asynccontextmanager
async def engine(where: Path | str, perform: Perform, seen: Seen, **more: object) -> AsyncIterator[Engine]:
    """Run an engine on a new or known folder (SQLite) or a database URL."""
    settings = EngineSettings(
        database_url=where if isinstance(where, str) else f"sqlite:///{where}/engine.db", executor_id="one"
    )
    running = Engine(
        replace(settings, **more),  # type: ignore[arg-type]
        perform=perform,
        apologize=seen.apologize,
        observe=seen.observe,
        count_rescued=seen.count,
    )
    await running.start()
    try:
        yield running
    finally:
        await running.close()


async def until(true: Callable[[], bool], limit_s: float = 20.0) -> None:
    async with asyncio.timeout(limit_s):
        while not true():
            await asyncio.sleep(0.02)


async def idle(running: Engine) -> None:
    async with asyncio.timeout(20):
        while sum((await running.depths()).values()):
            await asyncio.sleep(0.05)
