"""One repository in which everything fails, and another one where somebody asks a question meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from load import JOB, Parcel, Target, ended, insist, send
from served import Served

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull, Repo

FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
ASKER = "grace"
#: Failed jobs of one pull request.
JOBS_EACH = 10


@dataclass
class Flood:
    """`jobs` failed in the busy repository; `pulls` are its pull requests, `parcels` the deliveries that tell of it."""

    jobs: int
    quiet: Repo
    pulls: list[Pull] = field(default_factory=list)
    parcels: list[Parcel] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """How long a question waited for its answer, and how many of the failed jobs were explained by then."""

    took_s: float
    explained: int


async def prepare(github: SimulatedGitHub, *, jobs: int) -> Flood:
    """Let the jobs fail while nobody is told."""
    busy, quiet = github.add_repo("busy/big"), github.add_repo("quiet/small")
    github.add_user(ASKER, "write", repo=quiet)
    flood = Flood(jobs, quiet)
    buckets = [JOB.removesuffix(" - latest").replace("models", f"models_{number}") for number in range(JOBS_EACH)]
    for number in range(jobs):
        if number % JOBS_EACH == 0:
            pull = await github.open_pull(repo=busy)
            run = await github.start_run(pull, buckets=buckets)
            flood.pulls.append(pull)
        name = f"{buckets[number % JOBS_EACH]} - latest"
        told = await github.finish_job(run, name, "failure", log=f"{number}\n{FAILURE}")
        flood.parcels.append(Parcel(told.event, json.dumps(told.payload).encode(), told.guid))
    return flood


async def ask(github: SimulatedGitHub, bot: Served, flood: Flood, *, limit_s: float) -> Asked:
    """Open a pull request in the quiet repository and ask for help there."""
    pull = await github.open_pull(repo=flood.quiet)
    started = time.perf_counter()
    await github.comment(pull, ASKER, "/mlm help")
    await github.until(lambda: github.comments(pull, by_app=True), within_s=limit_s, why="the quiet one's answer")
    return Asked(time.perf_counter() - started, (await ended(bot.url)).get("diagnose", 0))


async def drown(github: SimulatedGitHub, bot: Served, flood: Flood, *, questions: int, limit_s: float) -> list[Asked]:
    """Tell of all failed jobs at once, and ask the questions meanwhile; the flood is still worked on afterwards."""
    target = Target(bot.url, github.webhook_secret)

    async def pour() -> None:
        parcels: Iterator[Parcel] = iter(flood.parcels)
        answers = await send(target, parcels, connections=16)
        await insist(target, answers, connections=4, pause_s=1.0, limit_s=limit_s)

    pouring = asyncio.create_task(pour())
    await github.until(lambda: len(bot.said("delivery")) >= flood.jobs // 4, within_s=limit_s)
    asked = []
    for _ in range(questions):
        asked.append(await ask(github, bot, flood, limit_s=limit_s))
        await asyncio.sleep(0.2)
    await pouring
    return asked
