"""Beginnings that many stories share, and what they look at in the end."""

from __future__ import annotations

import re

from structlog.typing import EventDict
from world import World

from bot.demo.actions_state import Run
from bot.demo.state import Pull

MODELS = "tests/unit_tests/models/**/*.py - latest"
DATA = "tests/unit_tests/data/**/*.py - latest"
MOE = "tests/unit_tests/transformer/moe/**/*.py - latest"
#: All that the bot ever changes on GitHub; each kind is counted by the story that is about it.
CHANGES = re.compile(
    r"POST .*/access_tokens|POST .*/issues/\d+/(comments|labels)|DELETE .*/issues/\d+/labels/.+|"
    r"PATCH .*/issues/comments/\d+|(POST|DELETE) .*/(issues|pulls)/comments/\d+/reactions(/\d+)?|"
    r"POST .*/actions/(runs|jobs)/\d+/(rerun|rerun-failed-jobs|cancel)|(POST|PATCH) .*/check-runs(/\d+)?"
)
#: What may be missing without anything being wrong.
MAY_BE_MISSING = re.compile(
    r".*/(contents/(\.github/.+|(docs/)?CODEOWNERS)|git/ref/.+|logs|labels/.+|memberships/.+|permission|pulls/\d+)"
)
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


def surprises(world: World) -> list[str]:
    """Requests of the bot that nobody could expect: another kind of change, a bad request, no such address."""
    found = []
    for seen in world.github.requests:
        line = f"{seen.method} {seen.path}"
        if seen.server == "api" and (
            (seen.method != "GET" and not CHANGES.fullmatch(line))
            or seen.status in {400, 401, 405, 415, 422}
            or (seen.status == 404 and not MAY_BE_MISSING.fullmatch(seen.path))
        ):
            found.append(f"{line}: {seen.status}")
    return found


def lines_of(said: list[EventDict], event: str) -> list[EventDict]:
    """Return the log lines of this name."""
    return [line for line in said if line["event"] == event]
