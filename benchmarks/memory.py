"""Does the bot's memory stay flat over a hundred thousand deliveries?

The real `mlm serve`; nine deliveries in ten need no work, one in twenty comes again under its id. After each tenth of
them all work is waited for, so that what is still in memory is what stays there.

usage: python benchmarks/memory.py [--deliveries 100000] [--connections 32] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from load import Parcel, Target, drained, ended, insist, send, traffic
from postgres import database_url
from served import Served, environment

from bot.demo.github import SimulatedGitHub

PARTS = 10
LIMIT_S = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(database_url(folder, postgres=options.postgres))
        asyncio.run(measure(folder, url, options))
    return 0


async def measure(folder: Path, url: str, options: argparse.Namespace) -> None:
    async with SimulatedGitHub() as github:
        mixed = (await traffic(github, repositories=10)).mixed()
        env = environment(github, folder, MLM_DATABASE_URL=url, MLM_SWEEP_EVERY_S="0")
        async with Served(env) as bot:
            target, process = Target(bot.url, github.webhook_secret), psutil.Process(bot.pid)
            print(f"at the start: {process.memory_info().rss / 1e6:.0f} MB", flush=True)
            sizes = []
            for number in range(1, PARTS + 1):
                statuses = await part(target, mixed, options.deliveries // PARTS, options.connections)
                sizes.append(process.memory_info().rss)
                share = f"{100 * number // PARTS} %"
                print(f"{share}: {sizes[-1] / 1e6:.0f} MB, {process.num_threads()} threads, {statuses}", flush=True)
                github.requests.clear()
                github.parts.access.budget.used = 0  # else the hour's rate limit ends the run, as GitHub's would
                bot.lines.clear()
            print(f"ratio of the end to a tenth: {sizes[-1] / sizes[0]:.2f}; work: {dict(await ended(bot.url))}")


async def part(target: Target, mixed: Iterator[Parcel], number: int, connections: int) -> dict[int, int]:
    answers = await send(target, mixed, connections=connections, most=number)
    statuses: Counter[int] = answers.statuses
    await insist(target, answers, connections=8, pause_s=1.0, limit_s=LIMIT_S)
    await drained(target.url, limit_s=LIMIT_S)
    return dict(statuses)


if __name__ == "__main__":
    sys.exit(main())
