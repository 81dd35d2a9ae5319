"""The host's clock jumps by hours or days, and back: budgets and tokens go by GitHub's, which does not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from stories import MODELS, fail_again, red_run, replies
from world import World

import bot.app

TOKENS = "access_tokens$"
#: Into another day, whatever the hour is.
DAY_S = 24 * 3600
HOURS_S = 3 * 3600


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Put the host's clock off by so many seconds from now on."""
    right, off = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: right() + off[0])
    monkeypatch.setattr(bot.app, "_now", lambda: datetime.fromtimestamp(time.time(), UTC))

    def put(seconds: float) -> None:
        off[0] = seconds

    return put


async def shown(world: World) -> str:
    """What `/readyz` says of the clock."""
    degraded = json.loads((await world.get("/readyz"))[1])["degraded"]
    return str(degraded.get("clock", ""))


@pytest.mark.timeout(200)
@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
async def test_a_spent_budget_is_not_spent_again_and_nobody_is_kept_waiting(
    tmp_path: Path, set_clock: Callable[[float], None], jump_s: int
) -> None:
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = b"limits: {gpu_jobs_per_pull_day: 1}\n"
    async with world:
        world.github.add_user("ada", "write")
        pull, run = await red_run(world, MODELS)

        async def ask() -> str:
            await world.github.comment(pull, "ada", "/mlm rerun unit models")
            await world.idle(within_s=60)
            return replies(world, pull)[-1]

        await ask()
        assert run.attempt_number == 2, "the budget is spent"
        await fail_again(world, run, MODELS)
        with structlog.testing.capture_logs() as said:
            for now_s in (jump_s, 0):
                set_clock(now_s)
                assert "there are 0 left" in await ask()
                assert run.attempt_number == 2
        assert [line["event"] for line in said if line["event"].startswith("clock.")] == ["clock.wrong", "clock.right"]
        world.github.advance_clock(timedelta(days=1))
        await ask()
        assert run.attempt_number == 3, "the next day has a budget of its own"


@pytest.mark.parametrize("jump_s", [HOURS_S, -HOURS_S])
async def test_tokens_are_neither_asked_for_again_and_again_nor_used_when_they_have_ended(
    set_clock: Callable[[float], None], world: World, jump_s: int
) -> None:
    world.github.add_user("ada", "write")
    pull = await world.github.open_pull(author="ada")

    async def asked_for_tokens() -> int:
        await world.github.comment(pull, "ada", "/mlm help")
        await world.idle(within_s=60)
        return len(world.github.asked("POST", TOKENS))

    issued = await asked_for_tokens()
    set_clock(jump_s)
    assert await asked_for_tokens() == issued
    ahead = "ahead of" if jump_s > 0 else "behind"
    assert await shown(world) == f"the host's clock is 180 min {ahead} GitHub's"
    metrics = (await world.get("/metrics"))[1].splitlines()
    (figure,) = (line for line in metrics if line.startswith("mlm_clock_ahead_seconds "))
    assert float(figure.split()[1]) == pytest.approx(jump_s, abs=10)
    world.github.advance_clock(timedelta(minutes=56))
    assert await asked_for_tokens() == issued + 1, "five minutes before its end, by GitHub's clock"
    set_clock(0)
    assert await asked_for_tokens() == issued + 1
    assert {seen.status for seen in world.github.requests} & {401, 403} == set()
    assert len(replies(world, pull)) == 4


@pytest.mark.parametrize("jump_s", [HOURS_S, -HOURS_S])
async def test_a_bot_that_starts_with_a_wrong_clock_is_known_by_its_key_all_the_same(
    tmp_path: Path, set_clock: Callable[[float], None], jump_s: int
) -> None:
    set_clock(jump_s)
    world = World(tmp_path)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        world.github.add_user("ada", "write")
        pull = await world.github.open_pull(author="ada")
        await world.github.comment(pull, "ada", "/mlm help")
        await world.idle(within_s=60)
        assert len(replies(world, pull)) == 1
        assert [seen.status for seen in world.github.asked("GET", "^/app$")] == [401, 200]


async def test_the_end_of_a_rate_limit_is_read_by_githubs_clock(
    set_clock: Callable[[float], None], world: World
) -> None:
    """By a clock that is three hours ahead it would be over long ago, and each second another call be made."""
    world.github.add_user("ada", "write")
    pull = await world.github.open_pull(author="ada")
    await world.idle()
    set_clock(HOURS_S)
    world.github.use_up_rate_limit(resets_in_s=300)
    await world.github.comment(pull, "ada", "/mlm help")
    await world.github.until(lambda: world.tasks_done("delivery", "put_off"))
    limited = json.loads((await world.get("/readyz"))[1])["degraded"]["github_rate_limited"]
    assert "rate limit" in limited
    assert len([seen for seen in world.github.requests if seen.status in {403, 429}]) == 1
