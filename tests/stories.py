"""Beginnings that many stories share, and what they look at in the end."""

from __future__ import annotations

from world import World

from bot.demo.actions_state import Run
from bot.demo.state import Pull

MODELS = "tests/unit_tests/models/**/*.py - latest"
DATA = "tests/unit_tests/data/**/*.py - latest"
MOE = "tests/unit_tests/transformer/moe/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"


async def red_run(world: World, *jobs: str, author: str = "ada", log: str = FAILURE) -> tuple[Pull, Run]:
    """A completed run whose `jobs` failed, each explained before the run ended."""
    pull = await world.github.open_pull(author=author)
    run = await world.github.start_run(pull)
    await fail_again(world, run, *jobs, log=log)
    return pull, run


async def fail_again(world: World, run: Run, *jobs: str, log: str = FAILURE) -> None:
    """End the newest attempt with these jobs red."""
    for job in jobs:
        await world.github.finish_job(run, job, "failure", log=log)
    await world.idle(within_s=60)
    await world.github.finish_run(run)
    await world.idle(within_s=60)


def replies(world: World, pull: Pull) -> list[str]:
    """The answers without the report on failures, and without their hidden first line."""
    found = [body for body in world.answers(pull) if not body.startswith("<!-- mlm-bot:report")]
    return [body.split("\n", 1)[1] for body in found]


def report(world: World, pull: Pull) -> str:
    """The one comment on failures; "" if there is none."""
    found = [body for body in world.answers(pull) if body.startswith("<!-- mlm-bot:report")]
    return found[0] if found else ""
