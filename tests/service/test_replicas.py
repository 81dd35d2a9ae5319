"""Three processes on one PostgreSQL behind a TCP balancer: one dies, one freezes, and nobody has to help."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from balancer import Balancer
from crash import KINDS, Story, judge, make_story
from postgres import postgres_server
from served import Served, environment

from bot.demo.github import SimulatedGitHub

COMMENTS = r"/issues/\d+/comments$"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres_server() as url:
        yield url


class Replicas:
    """Three of them, started at the same moment on an empty database."""

    def __init__(self, github: SimulatedGitHub, bots: list[Served], balancer: Balancer) -> None:
        self.github = github
        self.bots = bots
        self.balancer = balancer

    async def clean(self, stories: list[Story], within_s: float) -> float:
        """Wait until all stories have come to their ends; return how long that took."""
        started = time.monotonic()
        await self.github.until(lambda: judge(self.github, stories, green=False).clean, within_s=within_s)
        return time.monotonic() - started

    def working(self) -> Served:
        """One that has answered deliveries of the last moments."""
        return max(self.bots, key=lambda bot: len(bot.said("delivery")))


@pytest.fixture
async def replicas(tmp_path: Path, database: str) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(SimulatedGitHub())
        github.add_repo("NVIDIA/Megatron-LM")
        env = [
            environment(
                github,
                tmp_path / name,
                MLM_DATABASE_URL=database,
                MLM_EXECUTOR_ID=name,
                MLM_SWEEP_EVERY_S="3",
            )
            for name in ("one", "two", "three")
        ]
        bots = [Served(one) for one in env]
        await asyncio.gather(*(bot.__aenter__() for bot in bots))
        for bot in bots:
            stack.push_async_exit(bot.__aexit__)
        balancer = await stack.enter_async_context(Balancer([bot.url for bot in bots]))
        github.set_webhook_url(f"{balancer.url}/webhook")
        yield Replicas(github, bots, balancer)


@pytest.mark.timeout(400)
async def test_the_work_of_a_dead_replica_is_taken_over_and_a_frozen_one_does_nothing_twice(replicas: Replicas) -> None:
    github = replicas.github
    github.fail_next("POST", COMMENTS, "delay", delay_s=3.0, times=3)
    first = [await make_story(github, number, KINDS[number % len(KINDS)]) for number in range(5)]
    await github.until(lambda: github.asked("POST", COMMENTS), within_s=30)
    dead = next(bot for bot in replicas.bots if bot.said("job.explained") or bot.said("delivery"))
    await dead.end(signal.SIGKILL)
    replicas.bots.remove(dead)
    assert await replicas.clean(first, 60) < 60
    assert any(bot.said("delivery") for bot in replicas.bots)

    github.fail_next("POST", COMMENTS, "delay", delay_s=1.0, times=2)
    second = [await make_story(github, number, KINDS[number % len(KINDS)]) for number in range(10, 13)]
    frozen = replicas.bots[0]
    frozen.signal(signal.SIGSTOP)
    third = [await make_story(github, number, "failure") for number in range(20, 22)]
    await asyncio.sleep(5)
    frozen.signal(signal.SIGCONT)
    await replicas.clean([*second, *third], 90)
    await asyncio.sleep(3)
    verdict = judge(github, [*first, *second, *third], green=False)
    assert verdict.clean, verdict
