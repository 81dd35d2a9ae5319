"""How long does a question in one repository wait while hundreds of jobs fail in another?

The real `mlm serve` over HTTP, on a SQLite file or on PostgreSQL; the same question alone and in the flood, in one run.

usage: python benchmarks/fairness.py [--jobs 500] [--questions 5] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from flood import ask, drown, prepare
from load import drained, ended
from postgres import database_url
from served import Served, environment

from bot.demo.github import SimulatedGitHub

LIMIT_S = 170.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(database_url(folder, postgres=options.postgres))
        asyncio.run(measure(folder, url, options))
    return 0


async def measure(folder: Path, url: str, options: argparse.Namespace) -> None:
    async with SimulatedGitHub() as github:
        flood = await prepare(github, jobs=options.jobs)
        env = environment(github, folder, MLM_DATABASE_URL=url, MLM_SWEEP_EVERY_S="0")
        async with Served(env) as bot:
            github.set_webhook_url(f"{bot.url}/webhook")
            alone = [(await ask(github, bot, flood, limit_s=LIMIT_S)).took_s for _ in range(options.questions)]
            started = time.perf_counter()
            asked = await drown(github, bot, flood, questions=options.questions, limit_s=LIMIT_S)
            usual, meanwhile = statistics.median(alone), statistics.median(one.took_s for one in asked)
            print(f"a question alone: {usual:.2f} s; while {flood.jobs} jobs elsewhere fail: {meanwhile:.2f} s")
            print(f"  ratio {meanwhile / usual:.1f}, the slowest {max(one.took_s for one in asked) / usual:.1f}")
            print(f"  explained when the answers came: {[one.explained for one in asked]}", flush=True)
            await drained(bot.url, limit_s=LIMIT_S)
            took_s, explained = time.perf_counter() - started, (await ended(bot.url))["diagnose"]
            told = sum(bool(github.comments(pull, by_app=True)) for pull in flood.pulls)
    print(f"  the flood took {took_s:.1f} s, {explained} jobs explained, {told} of {len(flood.pulls)} comments there")


if __name__ == "__main__":
    sys.exit(main())
