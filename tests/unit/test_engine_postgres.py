"""The same engine on PostgreSQL, where several processes share the work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from engine_harness import Seen, engine, idle, task, until
from postgres import PostgresProcess, postgres_server
from sqlalchemy.exc import OperationalError

from bot.engine import workflows
from bot.engine.adapter import ExecutorInUseError
from bot.engine.locks import lock_for
from handlers.context import Task


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_server() as made:
        yield made


async def test_a_lock_belongs_to_one_holder_and_ends_with_it(url: str) -> None:
    one, other = lock_for(url, "x"), lock_for(url, "x")
    try:
        assert await one.take()
        assert await one.take(), "held still"
        for _ in range(20):  # free the moment that it is released, not when the server has ended the session
            assert not await other.take()
            await one.release()
            assert await other.take()
            one, other = other, one
    finally:
        await one.release()
        await other.release()


async def test_once_and_in_turn_and_taken_over(url: str) -> None:
    free, started = asyncio.Event(), asyncio.Event()
    seen = Seen()

    async def perform(one: Task) -> Sequence[Task]:
        if one.name == "delivery":
            return [task("f", name="report", pull=1, text="\0 \ud800")]
        started.set()
        await free.wait()
        return []

    async with engine(url, perform, seen, executor_id="dead", grace_s=0.0) as running:
        assert await running.accept(task("d"))
        assert not await running.accept(task("d"))
        await until(started.is_set)
        with pytest.raises(ExecutorInUseError):
            async with engine(url, perform, seen, executor_id="dead"):
                pass
    free.set()
    async with engine(url, perform, seen, executor_id="alive", rescue_every_s=0.2) as running:
        await until(lambda: ("f", "done") in seen.outcomes)
        await idle(running)
    assert seen.outcomes[0] == ("d", "done")
    assert [one for one in seen.outcomes if one[1] == "done"] == [("d", "done"), ("f", "done")]
    assert seen.rescued == 1


async def test_work_in_hand_outlives_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece of work meets the outage itself, another only when its result is to be stored."""
    monkeypatch.setattr(workflows, "AWAY_WAIT_S", 0.2)
    seen = Seen()
    both, gone = asyncio.Event(), asyncio.Event()
    started: list[str] = []

    async def perform(one: Task) -> Sequence[Task]:
        started.append(one.key)
        if len(started) == 2:
            both.set()
        if not gone.is_set():
            await gone.wait()
            if one.key == "meets it":
                raise OperationalError("SELECT 1", {}, Exception("server closed the connection"))
        return []

    with PostgresProcess.started() as server:
        async with engine(server.url, perform, seen, rescue_every_s=0.3, orphan_after_s=1.0) as running:
            await running.accept(task("meets it"))
            await running.accept(task("ends meanwhile"))
            await asyncio.wait_for(both.wait(), 20)
            await asyncio.to_thread(server.stop)
            gone.set()
            await until(lambda: len(seen.outcomes) == 2)
            await asyncio.to_thread(server.start)
            await until(lambda: ("meets it", "done") in seen.outcomes, limit_s=60)
            await until(lambda: ("ends meanwhile", "done") in seen.outcomes, limit_s=60)
            await idle(running)
    assert not seen.given_up
    assert ("meets it", "put_off") in seen.outcomes
    assert not [one for one in seen.outcomes if one[1] in {"failed", "gave_up"}]
