"""Secrets are changed while the bot serves: nothing is refused, nothing is said twice, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import DATA, FAILURE, MODELS, red_run, report
from world import World

NEW_SECRET = "the-secret-of-after-the-rotation"


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path / "data")
    made.github.add_repo("NVIDIA/Megatron-LM")
    made.github.add_user("ada", "write")
    return made


async def test_the_secret_of_the_webhook(world: World) -> None:
    """GitHub may sign with either for a while, and our comments are found again, also afterwards."""
    async with world:
        github, old = world.github, world.github.webhook_secret
        pull, run = await red_run(world, MODELS)
        await github.rerun(run, by="ada")
        await world.idle(within_s=60)
        await world.stop_bot()

        world.more = {"github_webhook_secret_old": old}
        github.app.webhook_secret = NEW_SECRET
        await world.start_bot()
        github.app.webhook_secret = old  # it is changed there after the restart
        await github.finish_job(run, MODELS, "failure", log=FAILURE)
        github.app.webhook_secret = NEW_SECRET
        await github.finish_job(run, DATA, "failure", log=FAILURE)
        await world.idle(within_s=60)
        assert {one.status_code for one in github.deliveries} <= {200, 202}
        (body,) = world.answers(pull)
        assert "models/**" in body
        assert "data/**" in body
        await world.stop_bot()

        world.more = {}
        await world.start_bot()
        await github.finish_run(run)
        await world.idle(within_s=60)
        assert world.answers(pull) == [report(world, pull)], "signed anew when it was edited, so it is known still"
        assert "2 failed" in report(world, pull)


async def test_the_key_of_the_app(world: World) -> None:
    async with world:
        github = world.github
        pull = await github.open_pull(author="ada")
        run = await github.start_run(pull)
        github.add_key()
        await world.idle()
        await world.stop_bot()
        await world.start_bot()
        github.delete_oldest_key()
        github.expire_tokens()
        await github.finish_job(run, MODELS, "failure", log=FAILURE)
        await world.idle(within_s=60)
        assert "flash" in report(world, pull)
        assert not world.tasks_done("diagnose", "put_off")


async def test_the_key_of_the_app_in_the_wrong_order(world: World) -> None:
    """The key that the bot has is gone before it gets the new one: the work waits for that."""
    async with world:
        github = world.github
        pull = await github.open_pull(author="ada")
        run = await github.start_run(pull)
        await world.idle()
        github.add_key()
        github.delete_oldest_key()
        github.expire_tokens()
        await github.finish_job(run, MODELS, "failure", log=FAILURE)
        await github.until(lambda: world.tasks_done("delivery", "put_off") or world.tasks_done("diagnose", "put_off"))
        status, told = await world.get("/readyz")
        assert (status, "the App since" in told) == (200, True)
        await world.stop_bot()
        await world.start_bot()
        await world.hurry()
        await world.idle(within_s=60)
        assert "flash" in report(world, pull)
