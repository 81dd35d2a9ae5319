"""Two Apps of ours, each a bot of its own, on one repository: what is asked is done once, and nothing is undone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from served import Served, environment
from stories import FAILURE, MODELS
from world import World

from bot.demo.actions_state import Run
from bot.demo.state import App, Installation, Pull
from bot.demo.wiring import new_app


@asynccontextmanager
async def two_bots(tmp_path: Path, *, settings: bytes | None = None) -> AsyncIterator[tuple[World, Served, App]]:
    """The usual bot in this process, and another App's bot in a process of its own."""
    world = World(tmp_path / "one")
    github = world.github
    repo = github.add_repo("NVIDIA/Megatron-LM")
    if settings is not None:
        repo.files[".github/mlm.yml"] = settings
    other = new_app(github.state, slug="mlm-staging")
    installation = Installation(github.state.next_id("installation"), other.id, repo.owner, {repo.id})
    github.state.installations[installation.id] = installation
    async with world:
        github.add_user("ada", "write")
        env = environment(
            github,
            tmp_path / "two",
            MLM_GITHUB_APP_ID=str(other.id),
            MLM_GITHUB_PRIVATE_KEY=other.private_key_pem,
            MLM_GITHUB_WEBHOOK_SECRET=other.webhook_secret,
        )
        async with Served(env) as second:
            other.webhook_url = f"{second.url}/webhook"
            yield world, second, other
            other.webhook_url = None


async def idle(world: World, second: Served) -> None:
    """Wait until neither has anything left to do, which one may have made for the other."""
    quiet = 0
    async with asyncio.timeout(60):
        while quiet < 3:
            await world.idle(within_s=60)
            quiet = quiet + 1 if await second.queued() == 0 else 0
            await asyncio.sleep(0.1)


async def red(world: World, second: Served) -> tuple[Pull, Run]:
    pull = await world.github.open_pull(author="ada")
    run = await world.github.start_run(pull)
    await world.github.finish_job(run, MODELS, "failure", log=FAILURE)
    await idle(world, second)  # a run that ends before its job is explained is reported half a minute later
    await world.github.finish_run(run)
    await idle(world, second)
    return pull, run


def said_by(world: World, pull: Pull, app_id: int) -> list[str]:
    return [comment.body.split("\n", 1)[1] for comment in world.github.comments(pull) if comment.app_id == app_id]


async def test_two_bots_do_what_is_asked_once(tmp_path: Path) -> None:
    async with two_bots(tmp_path) as (world, second, other):
        github = world.github
        pull, run = await red(world, second)
        reports = {app: said_by(world, pull, app) for app in (github.app_id, other.id)}
        assert {app: len(found) for app, found in reports.items()} == {github.app_id: 1, other.id: 1}
        await github.comment(pull, "ada", "/mlm rerun unit models")
        await idle(world, second)
        assert run.attempt_number == 2
        assert len([seen for seen in github.asked("POST", "/rerun") if seen.status < 300]) == 1
        answers = [said_by(world, pull, app)[1] for app in (github.app_id, other.id)]
        assert sorted(text.split(" [", 1)[0] for text in answers) == ["Already under way:", "Started"]
        await github.finish_run(run)
        await idle(world, second)
        await github.label(pull, "Run tests", by="ada")
        await idle(world, second)
        assert run.attempt_number == 3
        await github.finish_run(run)
        await idle(world, second)
        assert run.attempt_number == 3, "no wish is left over with the one that came second"
        assert list(pull.labels) == ["Run tests"]


async def test_the_settings_name_the_one_that_acts(tmp_path: Path) -> None:
    async with two_bots(tmp_path, settings=b"app: mlm-staging\n") as (world, second, other):
        pull, run = await red(world, second)
        await world.github.comment(pull, "ada", "/mlm rerun unit models")
        await idle(world, second)
        assert run.attempt_number == 2
        assert said_by(world, pull, world.github.app_id) == []
        assert [text.split(" ", 1)[0] for text in said_by(world, pull, other.id)[1:]] == ["Started"]
        assert [check.app_id for check in world.github.checks(pull)] == [other.id]
