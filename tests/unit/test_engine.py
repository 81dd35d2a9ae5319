"""The engine does what it took: once, in turn, again after a failure, and after the process was gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from engine_harness import Seen, engine, idle, task, until

from bot.engine.adapter import ExecutorInUseError
from bot.engine.documents import dump_task, load_task, place, task_id
from bot.engine.locks import lock_for
from handlers.context import RateLimitedError, RefusedError, Task


def test_a_task_survives_the_round_trip_and_any_text() -> None:
    odd = task("k", pull=7, text="\ud800 \0 é", many=[1, {"a": None}])
    assert load_task(dump_task(odd)) == odd
    assert dump_task(odd).isascii()


@pytest.mark.parametrize("key", ["", "é", "x" * 300])
def test_a_key_that_no_database_could_index_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        task_id(task(key))


def test_pull_requests_of_one_commit_have_tasks_of_their_own() -> None:
    ids = {task_id(task("k", name="report", pull=pull)) for pull in (1, 2, None)}
    assert len(ids) == 3


def test_where_tasks_wait() -> None:
    assert place(task("a")) == ("arrivals", "5")
    assert place(task("a", name="diagnose")) == ("jobs", "5")
    assert place(task("a", name="report", pull=3)) == ("pulls", "5#3")
    assert place(task("b", name="report", pull=3)) == place(task("a", name="labels", pull=3))
    assert len({place(task("a", name="report", pull=pull)) for pull in range(100)}) == 4


async def test_the_same_key_is_done_once_and_follow_ups_are_done(tmp_path: Path) -> None:
    done: list[str] = []

    async def perform(one: Task) -> Sequence[Task]:
        done.append(f"{one.name} {one.key}")
        return [task("f", name="report", pull=1)] if one.name == "delivery" else []

    seen = Seen()
    async with engine(tmp_path, perform, seen) as running:
        new = await asyncio.gather(*(running.accept(task("d")) for _ in range(5)))
        assert sorted(new) == [False] * 4 + [True]
        await idle(running)
        assert not await running.accept(task("d"))
        await idle(running)
    assert done == ["delivery d", "report f"]
    assert seen.outcomes == [("d", "done"), ("f", "done")]


async def test_one_at_a_time_per_pull_request_and_others_meanwhile(tmp_path: Path) -> None:
    running_now: set[int | None] = set()
    together: list[set[int | None]] = []

    async def perform(one: Task) -> Sequence[Task]:
        assert one.pull not in running_now
        running_now.add(one.pull)
        together.append(set(running_now))
        await asyncio.sleep(0.3)
        running_now.discard(one.pull)
        return []

    seen = Seen()
    async with engine(tmp_path, perform, seen) as running:
        for number in range(6):
            await running.accept(task(str(number), name="report", pull=number % 2))
        await idle(running)
    assert [outcome for _, outcome in seen.outcomes] == ["done"] * 6
    assert {0, 1} in together


async def test_a_rate_limit_puts_the_task_off_without_a_failure(tmp_path: Path) -> None:
    tries: list[float] = []

    async def perform(one: Task) -> Sequence[Task]:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) == 1:
            raise RateLimitedError("wait", after_s=0.7)
        return []

    seen = Seen()
    async with engine(tmp_path, perform, seen) as running:
        await running.accept(task("d"))
        await until(lambda: len(tries) == 2)
        await idle(running)
    assert tries[1] - tries[0] >= 0.6
    assert seen.outcomes == [("d", "put_off"), ("d", "done")]
    assert not seen.given_up


def test_work_is_put_off_for_a_day_before_it_is_given_up_and_never_for_less_than_asked() -> None:
    from bot.engine.workflows import MAX_PUT_OFF, pause_s

    pauses = [pause_s(30, times) for times in range(1, MAX_PUT_OFF + 1)]
    assert pauses[:6] == [30, 60, 120, 240, 480, 600]
    assert max(pauses) == 600
    assert sum(pauses) > 24 * 3600
    assert pause_s(3600, 5) == 3600


async def test_a_task_that_fails_is_tried_again_told_and_revived_by_a_redelivery(tmp_path: Path) -> None:
    healed = False

    async def perform(one: Task) -> Sequence[Task]:
        if not healed and one.name == "report":
            raise RuntimeError("no")
        return [task("f", name="report", pull=1)] if one.name == "delivery" else []

    seen = Seen()
    async with engine(tmp_path, perform, seen) as running:
        await running.accept(task("d"))
        await until(lambda: ("f", "gave_up") in seen.outcomes)
        await idle(running)
        assert seen.outcomes == [("d", "done"), *[("f", "failed")] * 3, ("f", "gave_up")]
        assert seen.given_up == ["f"]
        healed = True
        assert not await running.accept(task("d"))
        await until(lambda: seen.outcomes[-1] == ("f", "done"))


async def test_work_is_finished_or_kept_when_the_engine_stops(tmp_path: Path) -> None:
    seen = Seen()
    started: list[str] = []
    hang = asyncio.Event()

    async def perform(one: Task) -> Sequence[Task]:
        started.append(one.key)
        if one.key == "hangs":
            await hang.wait()
        else:
            await asyncio.sleep(0.5)
        return [task("after", name="diagnose")] if one.key == "short" else []

    async with engine(tmp_path, perform, seen, grace_s=1.0) as running:
        await running.accept(task("short"))
        await running.accept(task("hangs"))
        await until(lambda: len(started) == 2)
    assert ("short", "done") in seen.outcomes
    assert ("hangs", "done") not in seen.outcomes
    assert not seen.given_up

    hang.set()
    async with engine(tmp_path, perform, seen) as running:
        await until(lambda: {("hangs", "done"), ("after", "done")} <= set(seen.outcomes))
    assert started.count("hangs") == 2
    assert started.count("short") == 1


async def test_two_processes_cannot_share_an_executor_id(tmp_path: Path) -> None:
    async def perform(one: Task) -> Sequence[Task]:
        return []

    async with engine(tmp_path, perform, Seen()):
        with pytest.raises(ExecutorInUseError, match="MLM_EXECUTOR_ID"):
            async with engine(tmp_path, perform, Seen()):
                pass


async def test_a_short_look_at_the_lock_does_not_stop_a_start(tmp_path: Path) -> None:
    """A rescuer takes the lock of each silent process for a moment, to see whether that lives."""

    async def perform(one: Task) -> Sequence[Task]:
        return []

    looking = lock_for(f"sqlite:///{tmp_path}/engine.db", "one")
    assert await looking.take()
    asyncio.get_running_loop().call_later(0.5, lambda: asyncio.ensure_future(looking.release()))
    async with engine(tmp_path, perform, Seen()) as running:
        await running.check()


async def test_a_final_no_of_github_is_not_tried_again(tmp_path: Path) -> None:
    async def perform(one: Task) -> Sequence[Task]:
        raise RefusedError("Repository access blocked", status=451)

    seen = Seen()
    async with engine(tmp_path, perform, seen) as running:
        await running.accept(task("d"))
        await until(lambda: bool(seen.outcomes))
        await idle(running)
    assert seen.outcomes == [("d", "refused")]
