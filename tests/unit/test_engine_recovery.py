"""Work of processes that are gone, work that was lost sight of, and rows that are old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from dbos._sys_db import SystemDatabase
from engine_harness import Seen, engine, idle, task, until
from sqlalchemy.exc import OperationalError

from bot.engine import rescue, workflows
from bot.engine.collector import collect_finished
from bot.engine.rescue import running_here
from handlers.context import Task


class Hanging:
    """Performs nothing until `free` is set."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.started = 0

    async def perform(self, one: Task) -> Sequence[Task]:
        self.started += 1
        await self.free.wait()
        return []


async def test_the_work_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    hanging, seen = Hanging(), Seen()
    async with engine(tmp_path, hanging.perform, seen, executor_id="dead", grace_s=0.0) as running:
        await running.accept(task("left", name="report", pull=1))
        await until(lambda: hanging.started == 1)
        assert running_here() == {"report:5#1:left"}
    hanging.free.set()
    async with engine(tmp_path, hanging.perform, seen, executor_id="alive", rescue_every_s=0.2) as running:
        await until(lambda: ("left", "done") in seen.outcomes)
        await idle(running)
    assert seen.rescued == 1


async def test_the_work_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    hanging, seen = Hanging(), Seen()
    async with engine(tmp_path, hanging.perform, seen, rescue_every_s=0.1, orphan_after_s=0.1) as running:
        await running.accept(task("slow"))
        await until(lambda: hanging.started == 1)
        await asyncio.sleep(1.0)
        assert (hanging.started, seen.rescued) == (1, 0)
        hanging.free.set()
        await idle(running)


async def test_work_that_lost_its_coroutine_is_started_again(tmp_path: Path) -> None:
    hanging, seen = Hanging(), Seen()
    async with engine(tmp_path, hanging.perform, seen, rescue_every_s=0.1, orphan_after_s=0.3) as running:
        await running.accept(task("lost"))
        await until(lambda: hanging.started == 1)
        for one in tuple(workflows._workers[0].running):
            one.cancel()
        await until(lambda: hanging.started == 2)
        hanging.free.set()
        await idle(running)
    assert seen.outcomes[-1] == ("lost", "done")
    assert seen.rescued == 1


RESULT, NEXT = "record_operation_result", "init_child_workflow"


@pytest.mark.parametrize(
    ("failing", "rescued"), [([RESULT], 0), ([NEXT], 1), ([NEXT, NEXT], 2), ([RESULT, NEXT], 1)], ids=str
)
async def test_an_outage_that_dbos_does_not_wait_for_costs_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: list[str], rescued: int
) -> None:
    """It is over before anything else is stored: the work would be given up, or its row end as an error."""
    seen, failing = Seen(), [*failing]

    def fail_in(place: str) -> None:
        real = getattr(SystemDatabase, place)

        def store(self: SystemDatabase, *arguments: object, **more: object) -> object:
            if seen.outcomes and failing[:1] == [place]:
                del failing[0]
                raise OperationalError("INSERT", {}, Exception("connection is bad"))
            return real(self, *arguments, **more)

        monkeypatch.setattr(SystemDatabase, place, store)

    async def perform(one: Task) -> Sequence[Task]:
        return [task("then")] if one.key == "first" else []

    fail_in(RESULT)
    fail_in(NEXT)
    monkeypatch.setattr(workflows, "AWAY_WAIT_S", 0.2)
    async with engine(tmp_path, perform, seen, rescue_every_s=0.1, orphan_after_s=0.3) as running:
        await running.accept(task("first"))
        await until(lambda: ("then", "done") in seen.outcomes)
        await idle(running)
    assert (failing, seen.given_up, seen.rescued) == ([], [], rescued)


async def test_finished_rows_are_collected_and_young_ones_kept(tmp_path: Path) -> None:
    hanging, seen = Hanging(), Seen()
    hanging.free.set()
    async with engine(tmp_path, hanging.perform, seen) as running:
        await running.accept(task("old"))
        await until(lambda: ("old", "done") in seen.outcomes)
        await idle(running)
        await collect_finished()
        assert not await running.accept(task("old"))
        await asyncio.sleep(0.05)
        await collect_finished(keep_s=0.0)
        assert await running.accept(task("old"))
        await idle(running)


@pytest.mark.parametrize(("first_s", "then_s"), [(10_800, 0), (0, -10_800), (0, 10_800)])
async def test_what_waits_is_not_moved_away_with_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_s: int, then_s: int
) -> None:
    """The host's clock was ahead and is put right, is set back, is set forward."""
    monkeypatch.setattr(rescue, "CLOCK_SKEW_S", 1.0)
    right, off = time.time, first_s
    monkeypatch.setattr(time, "time", lambda: right() + off)
    hanging, seen = Hanging(), Seen()
    hanging.free.set()
    async with engine(tmp_path, hanging.perform, seen, rescue_every_s=0.2) as running:
        await running.accept(replace(task("waits"), delay_s=1.0))
        await running.accept(replace(task("waits for long"), delay_s=3_000.0))
        off = then_s
        await until(lambda: ("waits", "done") in seen.outcomes)
        long_is_due = then_s > first_s
        await asyncio.sleep(0.5)
        assert (("waits for long", "done") in seen.outcomes) == long_is_due
        assert [one[1] for one in seen.outcomes] == ["done"] * (1 + long_is_due)
