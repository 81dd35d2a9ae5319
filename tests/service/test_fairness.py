"""One repository with hundreds of events does not make another one wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine_harness import Seen, engine, task, until
from flood import drown, prepare
from load import drained, ended
from served import Served, environment

from bot.demo.github import SimulatedGitHub
from handlers.context import Repo, Task

BUSY, QUIET = Repo(1, "busy/repo", 1), Repo(2, "quiet/repo", 2)
WORK_S = 0.2


@pytest.mark.parametrize("name", ["delivery", "diagnose", "report"])
async def test_a_flood_of_one_repository_delays_another_by_its_own_work_only(tmp_path: Path, name: str) -> None:
    """A hundred pieces of work stand in the lines of the busy one; the quiet one's is done before most of them."""
    running: set[str] = set()
    most = 0

    async def perform(one: Task) -> Sequence[Task]:
        nonlocal most
        running.add(one.key)
        most = max(most, len([key for key in running if key.startswith("busy")]))
        await asyncio.sleep(WORK_S)
        running.discard(one.key)
        return []

    seen = Seen()
    async with engine(tmp_path, perform, seen) as bot:
        for number in range(100):
            pull = number if name == "report" else None
            await bot.accept(replace(task(f"busy-{number}", name=name, pull=pull), repo=BUSY))
        done_before = len(seen.outcomes)
        await bot.accept(replace(task("quiet", name=name, pull=1 if name == "report" else None), repo=QUIET))
        await until(lambda: ("quiet", "done") in seen.outcomes, limit_s=60)
        waited_for = len(seen.outcomes) - done_before
        assert waited_for < 60, "the quiet one stood behind all of the busy one's"
        assert most <= (2 if name == "diagnose" else 4)


async def test_a_question_is_answered_before_the_failures_of_another_repository_are_through(tmp_path: Path) -> None:
    """The real server over HTTP: 20 jobs fail at once in one repository, somebody asks for help in another."""
    async with SimulatedGitHub() as github:
        flood = await prepare(github, jobs=20)
        async with Served(environment(github, tmp_path, MLM_SWEEP_EVERY_S="0")) as bot:
            github.set_webhook_url(f"{bot.url}/webhook")
            (asked,) = await drown(github, bot, flood, questions=1, limit_s=90)
            assert asked.explained < flood.jobs, "the question stood behind all of the flood"
            await drained(bot.url, limit_s=90)
            assert (await ended(bot.url))["diagnose"] == flood.jobs
            assert not bot.said("task.failed_once")
        assert all(github.comments(pull, by_app=True) for pull in flood.pulls)
