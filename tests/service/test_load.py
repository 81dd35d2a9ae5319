"""Under load nothing is lost and memory stays flat: what benchmarks/load.py and benchmarks/memory.py do, in short."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import psutil
import pytest
from load import Target, drained, ended, insist, send, traffic
from postgres import postgres_server
from served import Served, environment

from bot.demo.github import SimulatedGitHub

BURST = 32
MIXED = 100
#: Caches fill up in the beginning; a leak of what a delivery takes (some 100 KB) would be many times that.
GROWTH_BYTES = 40_000_000


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_burst_is_worked_on_to_the_end_and_nothing_of_it_is_lost(tmp_path: Path, database: str) -> None:
    """Each is answered 202 or told when to come again, which it does; then each was worked on, once."""
    if database == "postgres":
        with postgres_server() as url:
            await burst(tmp_path, url)
    else:
        await burst(tmp_path, f"sqlite:///{tmp_path}/bot.db")


async def burst(folder: Path, url: str) -> None:
    async with SimulatedGitHub() as github:
        made = await traffic(github, repositories=4)
        env = environment(github, folder, MLM_DATABASE_URL=url, MLM_SWEEP_EVERY_S="0")
        async with Served(env) as bot:
            target = Target(bot.url, github.webhook_secret)
            parcels = list(itertools.islice(made.failed, BURST))
            answers = await send(target, iter(parcels), connections=BURST)
            assert set(answers.statuses) <= {202, 503}
            await insist(target, answers, connections=8, pause_s=0.5, limit_s=60)
            again = await send(target, iter(parcels[:20]), connections=20)
            assert again.statuses == {202: 20}
            await drained(bot.url, limit_s=90)
            assert await ended(bot.url) == {"delivery": BURST, "diagnose": BURST}
            outcomes = Counter(line["outcome"] for line in bot.said("delivery"))
            assert (outcomes["accepted"], outcomes["duplicate"]) == (BURST, 20)
            assert not bot.said("task.failed_once")


async def test_memory_stays_flat_over_many_deliveries(tmp_path: Path) -> None:
    """Nine in ten need no work, one in twenty comes again."""
    async with SimulatedGitHub() as github:
        mixed = (await traffic(github, repositories=4)).mixed()
        async with Served(environment(github, tmp_path, MLM_SWEEP_EVERY_S="0")) as bot:
            target, process = Target(bot.url, github.webhook_secret), psutil.Process(bot.pid)
            sizes = []
            for _ in range(4):
                answers = await send(target, mixed, connections=16, most=MIXED)
                assert answers.statuses == {202: MIXED}
                await drained(bot.url, limit_s=60)
                sizes.append(process.memory_info().rss)
            assert sizes[-1] - sizes[0] < GROWTH_BYTES, sizes
            new = len([line for line in bot.said("delivery") if line["outcome"] == "accepted"])
            assert 8 < new < 40
            assert await ended(bot.url) == {"delivery": new, "diagnose": new}
