"""Work that was put off starts when what kept it is over: soon, one after the other, and never later than before."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from engine_harness import Seen, engine, task, until

from bot.engine import hurry, workflows
from bot.github.weather import EVERYBODY, Weather
from bot.lookout import Lookout
from handlers.context import RateLimitedError, Task


class Away:
    """GitHub as the work meets it."""

    def __init__(self) -> None:
        self.away = True
        self.met = 0

    async def perform(self, _: Task) -> Sequence[Task]:
        self.met += 1
        if self.away:
            raise RateLimitedError("GitHub cannot be reached", after_s=600.0)
        return []


async def delays() -> dict[str, float]:
    """How long each piece of work still waits, in seconds."""
    rows = await DBOS.list_workflows_async(status="DELAYED", load_input=False, load_output=False)
    return {row.workflow_id: (row.delay_until_epoch_ms or 0) / 1000 - time.time() for row in rows}


async def test_put_off_work_starts_one_after_the_other_and_the_rest_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hurry, "APART_S", 30.0)
    monkeypatch.setattr(hurry, "PAGE", 3)
    github, seen = Away(), Seen()
    async with engine(tmp_path, github.perform, seen) as running:
        for number in range(6):
            one = task(f"put-off-{number}", name="diagnose")
            elsewhere = replace(one.repo, id=8, installation_id=10)
            await running.accept(replace(one, repo=elsewhere) if number == 3 else one)
        await until(lambda: github.met == 6)
        await running.accept(replace(task("its-own-pause"), delay_s=900.0))
        while len(await delays()) < 7:
            await asyncio.sleep(0.05)
        assert await running.hurry(lambda one: one.repo.installation_id == 9) == 5
        waits = await delays()
        others = {name: wait_s for name, wait_s in waits.items() if name.startswith(("diagnose:8:", "delivery"))}
        assert sorted(round(wait_s, -2) for wait_s in others.values()) == [600, 900]
        hurried = sorted(wait_s for name, wait_s in waits.items() if name not in others)
        assert hurried == [pytest.approx(30 * place, abs=20) for place in range(1, 6)]
        monkeypatch.setattr(hurry, "APART_S", 90.0)
        assert await running.hurry(lambda _: True) == 1, "only the one of the other installation comes sooner now"


async def test_a_row_that_cannot_be_read_keeps_no_other_from_being_hurried(tmp_path: Path) -> None:
    github, seen = Away(), Seen()
    async with engine(tmp_path, github.perform, seen) as running:
        for key in ("first", "second"):
            await running.accept(task(key))
        while len(await delays()) < 2:
            await asyncio.sleep(0.05)
        with contextlib.closing(sqlite3.connect(tmp_path / "engine.db")) as connection, connection:
            connection.execute(
                "UPDATE workflow_input SET inputs = replace(inputs, 'installation_id', 'other')"
                " WHERE workflow_uuid LIKE '%first~1'"
            )
        github.away = False
        assert await running.hurry(lambda _: True) == 1
        await until(lambda: ("second", "done") in seen.outcomes)


async def test_hurried_work_is_done(tmp_path: Path) -> None:
    github, seen = Away(), Seen()
    async with engine(tmp_path, github.perform, seen) as running:
        await running.accept(task("waits"))
        await until(lambda: github.met == 1)
        while not await delays():
            await asyncio.sleep(0.05)
        github.away = False
        assert await running.hurry(lambda _: True) == 1
        await until(lambda: ("waits", "done") in seen.outcomes)
    assert workflows.LONGEST_PAUSE_S == 600


class Sky:
    """A weather, with a GitHub that answers when it is asked how it is, and an engine that hurries."""

    def __init__(self) -> None:
        noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
        self.weather = Weather(lambda: noon, observe=lambda _: None, show=lambda *_: None, calm_s=0.02)
        self.hurried: list[set[int]] = []
        self.asked = 0
        self.well = False

    async def ask(self) -> None:
        self.asked += 1
        if not self.well:
            self.weather.unreachable(ConnectionResetError())
            raise RateLimitedError("GitHub cannot be reached", after_s=30.0)
        self.weather.answered("the App", ok=True)

    async def hurry(self, concerns: Any) -> int:
        tasks = [replace(task("k"), repo=replace(task("k").repo, installation_id=number)) for number in (1, 2)]
        self.hurried.append({one.repo.installation_id for one in tasks if concerns(one)})
        return 0


@pytest.fixture
def sky() -> Sky:
    return Sky()


async def told(_: BaseException) -> bool:
    return False


async def test_github_is_asked_only_while_it_is_unwell_and_everybodys_work_is_hurried(sky: Sky) -> None:
    lookout = Lookout(sky, sky, every_s=0.01, told=told)  # type: ignore[arg-type]
    rounds = [asyncio.create_task(one) for one in (lookout.keep_asking(), lookout.keep_hurrying())]
    await asyncio.sleep(0.1)
    assert sky.asked == 0
    sky.weather.unreachable(ConnectionResetError())
    await until(lambda: sky.asked >= 3)
    assert sky.hurried == []
    sky.well = True
    await until(lambda: sky.hurried == [{1, 2}])
    asked = sky.asked
    await asyncio.sleep(0.1)
    assert sky.asked == asked
    for one in rounds:
        one.cancel()


async def test_a_limit_that_is_over_hurries_the_work_of_its_installation(sky: Sky) -> None:
    lookout = Lookout(sky, sky, every_s=60.0, told=told)  # type: ignore[arg-type]
    hurrying = asyncio.create_task(lookout.keep_hurrying())
    sky.weather.limited("installation 2", why="403 wait", for_s=0.02)
    await until(lambda: sky.hurried == [{2}])
    hurrying.cancel()


async def test_a_github_that_only_seems_to_be_well_does_not_use_the_work_up(
    sky: Sky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that is put off 150 times is given up: in a day, and not within an hour."""
    now_s = 0.0
    loop = asyncio.get_running_loop()
    lookout = Lookout(sky, sky, every_s=60.0, told=told)  # type: ignore[arg-type]
    monkeypatch.setattr(loop, "time", lambda: now_s)
    hurried = 0
    for minute in range(24 * 60):
        now_s = minute * 60.0
        hurried += lookout._may_hurry(EVERYBODY)
    monkeypatch.undo()
    assert 20 <= hurried <= 35
    assert lookout._may_hurry("installation 3")


async def test_whoever_was_well_for_long_is_hurried_at_once_again(sky: Sky, monkeypatch: pytest.MonkeyPatch) -> None:
    lookout = Lookout(sky, sky, every_s=60.0, told=told)  # type: ignore[arg-type]
    now_s = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)

    def may_hurry_at(time_s: float) -> bool:
        nonlocal now_s
        now_s = time_s
        return lookout._may_hurry(EVERYBODY)

    answers = [may_hurry_at(time_s) for time_s in (0.0, 59.0, 61.0, 100.0, 5000.0, 5061.0)]
    monkeypatch.undo()
    assert answers == [True, False, True, False, True, True]
