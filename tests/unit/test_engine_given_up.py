"""No work ends without a word: what cannot be done is told in the log, in a figure and to whoever waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from dbos import DBOS
from engine_harness import Seen, engine, idle, task, until
from structlog.typing import EventDict

from bot.engine import rescue, workflows
from bot.engine.rescue import Rescuer
from handlers.context import RateLimitedError, Task

BY_REQUEST = {"rescue_every_s": 0.1, "orphan_after_s": 0.1}


class Lost:
    """Work whose coroutine goes away each time, until it is `healed`."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.healed = False

    async def perform(self, _: Task) -> Sequence[Task]:
        if not self.healed:
            self.starts.append(asyncio.get_running_loop().time())
            for one in tuple(workflows._workers[0].running):
                one.cancel()
            await asyncio.Event().wait()
        return []


async def status_of(workflow: str) -> str:
    (row,) = await DBOS.list_workflows_async(workflow_ids=[workflow], load_input=False, load_output=False)
    return str(row.status)


async def test_work_that_is_lost_each_time_is_given_up_and_taken_up_by_a_redelivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[EventDict]
) -> None:
    monkeypatch.setattr(rescue, "MAX_RESUMES", 2)
    lost, seen = Lost(), Seen()
    async with engine(tmp_path, lost.perform, seen, **BY_REQUEST) as running:
        await running.accept(task("stuck", name="report", pull=7))
        await until(lambda: seen.given_up == ["stuck"])
        await idle(running)
        assert (len(lost.starts), seen.rescued) == (3, 2)
        assert [one for one in seen.outcomes if one[1] != "failed"] == [("stuck", "gave_up")]
        (line,) = (one for one in said if one["event"] == "task.gave_up")
        assert (line["task"], line["key"], line["why"]) == ("report", "stuck", "lost sight of 3 times")
        assert await status_of("report:5#7:stuck") == "CANCELLED"
        lost.healed = True
        assert not await running.accept(task("stuck", name="report", pull=7))
        await until(lambda: ("stuck", "done") in seen.outcomes)
        await idle(running)
    assert seen.given_up == ["stuck"]


def test_lost_work_is_left_alone_for_longer_each_time_but_taken_up_for_hours() -> None:
    rescuer = Rescuer("sqlite:///x", "one", lock=None, count=lambda _: None)  # type: ignore[arg-type]
    waits = []
    for restarts in range(rescue.MAX_RESUMES):
        rescuer._resumed["lost"] = restarts
        waits.append(rescuer._patience_s("lost"))
    assert waits[:6] == [20, 40, 80, 160, 320, 600]
    assert max(waits) == 600
    assert sum(waits) > 2 * 3600


async def test_work_that_the_engine_set_aside_is_told_and_taken_up_by_a_redelivery(
    tmp_path: Path, said: list[EventDict]
) -> None:
    """It was in hand when one process after the other ended: dbos closes its row without a word."""
    seen, started, free = Seen(), 0, asyncio.Event()

    async def perform(_: Task) -> Sequence[Task]:
        nonlocal started
        started += 1
        await free.wait()
        return []

    async with engine(tmp_path, perform, seen, grace_s=0.0) as running:
        await running.accept(task("killer"))
        await until(lambda: started == 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "engine.db")) as connection, connection:
        connection.execute("UPDATE workflow_status SET recovery_attempts = ?", (workflows.MAX_RECOVERIES + 1,))
    async with engine(tmp_path, perform, seen, **BY_REQUEST) as running:
        await until(lambda: seen.given_up == ["killer"])
        await idle(running)
        assert [one for one in seen.outcomes if one[1] != "failed"] == [("killer", "gave_up")]
        assert [one["why"] for one in said if one["event"] == "task.gave_up"] == [
            "in hand each time that a process ended"
        ]
        free.set()
        assert not await running.accept(task("killer"))
        await until(lambda: ("killer", "done") in seen.outcomes)
        await idle(running)
    assert seen.given_up == ["killer"]


def spoil(folder: Path, workflow: str) -> None:
    """Leave a row whose document this release cannot read."""
    with contextlib.closing(sqlite3.connect(folder / "engine.db")) as connection, connection:
        changed = connection.execute(
            "UPDATE workflow_input SET inputs = replace(inputs, 'installation_id', 'other') WHERE workflow_uuid = ?",
            (workflow,),
        )
        assert changed.rowcount == 1


async def test_a_row_that_cannot_be_read_keeps_no_other_from_being_given_up(
    tmp_path: Path, said: list[EventDict]
) -> None:
    seen, started = Seen(), 0

    async def perform(_: Task) -> Sequence[Task]:
        nonlocal started
        started += 1
        await asyncio.Event().wait()
        return []

    async with engine(tmp_path, perform, seen, grace_s=0.0) as running:
        for number, key in enumerate(("first", "second", "third")):
            await running.accept(task(key, pull=number))
        await until(lambda: started == 3)
    spoil(tmp_path, "delivery:5#0:first")
    with contextlib.closing(sqlite3.connect(tmp_path / "engine.db")) as connection, connection:
        connection.execute("UPDATE workflow_status SET recovery_attempts = ?", (workflows.MAX_RECOVERIES + 1,))
    async with engine(tmp_path, perform, seen, **BY_REQUEST) as running:
        await until(lambda: set(seen.given_up) == {"second", "third"})
        while await status_of("delivery:5#0:first") != "CANCELLED":
            await asyncio.sleep(0.02)
        assert not await running.accept(task("first", pull=0)), "its redelivery is answered, and nothing is made of it"
    assert [one["workflow"] for one in said if one["event"] == "engine.unreadable"] == ["delivery:5#0:first"] * 2
    assert "engine.round_failed" not in {one["event"] for one in said}


async def test_a_waiting_row_that_cannot_be_read_keeps_no_work_of_a_dead_process(tmp_path: Path) -> None:
    seen = Seen()

    async def perform(_: Task) -> Sequence[Task]:
        return []

    async with engine(tmp_path, perform, seen) as running:
        await running.accept(replace(task("unreadable"), delay_s=500.0))
        await running.accept(replace(task("of-the-dead", pull=3), delay_s=500.0))
    spoil(tmp_path, "delivery:5:unreadable")
    with contextlib.closing(sqlite3.connect(tmp_path / "engine.db")) as connection, connection:
        connection.execute(
            "UPDATE workflow_status SET status = 'PENDING', executor_id = 'dead', delay_until_epoch_ms = NULL"
            " WHERE workflow_uuid = 'delivery:5#3:of-the-dead'"
        )
    async with engine(tmp_path, perform, seen, **BY_REQUEST):
        await until(lambda: seen.outcomes == [("of-the-dead", "done")])
    assert seen.rescued == 1


async def test_a_task_whose_follow_up_cannot_be_stored_is_told(tmp_path: Path, said: list[EventDict]) -> None:
    seen = Seen()

    async def perform(_: Task) -> Sequence[Task]:
        return [task("x" * 300)]

    async with engine(tmp_path, perform, seen) as running:
        await running.accept(task("first"))
        await until(lambda: seen.given_up == ["first"])
        await idle(running)
    assert seen.outcomes == [("first", "done"), ("first", "gave_up")]
    assert [one["event"] for one in said if one["event"].startswith("task.")] == ["task.not_followed", "task.gave_up"]


async def test_an_apology_waits_for_github_as_all_work_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put off for a day is given up while GitHub is away: whoever waits would never hear of it."""
    seen, tries = Seen(), 0

    async def apologize(failed: Task) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RateLimitedError("GitHub cannot be reached", after_s=0.05)
        seen.given_up.append(failed.key)

    async def perform(_: Task) -> Sequence[Task]:
        raise RateLimitedError("GitHub cannot be reached", after_s=0.05)

    monkeypatch.setattr(workflows, "MAX_PUT_OFF", 1)
    monkeypatch.setattr(seen, "apologize", apologize)
    async with engine(tmp_path, perform, seen) as running:
        await running.accept(task("d"))
        await until(lambda: ("d", "gave_up") in seen.outcomes)
        monkeypatch.setattr(workflows, "MAX_PUT_OFF", 150)
        await until(lambda: seen.given_up == ["d"])
        await idle(running)
    assert tries == 3
    assert seen.outcomes == [("d", "put_off"), ("d", "put_off"), ("d", "gave_up")]


async def test_an_apology_that_is_given_up_is_not_apologized_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[EventDict]
) -> None:
    class Mute(Seen):
        async def apologize(self, failed: Task) -> None:
            raise RateLimitedError("GitHub cannot be reached", after_s=0.05)

    async def perform(_: Task) -> Sequence[Task]:
        raise RateLimitedError("GitHub cannot be reached", after_s=0.05)

    monkeypatch.setattr(workflows, "MAX_PUT_OFF", 0)
    async with engine(tmp_path, perform, Mute()) as running:
        await running.accept(task("d"))
        await until(lambda: len([one for one in said if one["event"] == "task.gave_up"]) == 2)
        await idle(running)
    assert [(one["task"], one["key"]) for one in said if one["event"] == "task.gave_up"] == [
        ("delivery", "d"),
        ("apology", "delivery-d"),
    ]
