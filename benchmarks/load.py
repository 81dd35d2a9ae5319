"""How fast deliveries are taken: those that need no work, against a bare handler; those that do; and a burst.

The real `mlm serve` as a process of its own; the bare handler (benchmarks/bare_server.py) verifies and writes one row.
Both are asked in turn, a second each, in one run: the ratios mean something on a busy machine, the times do not.

usage: python benchmarks/load.py [--seconds 6] [--connections 64] [--repositories 10] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from load import Answers, Target, Traffic, drained, ended, insist, send, traffic
from postgres import postgres_server
from served import Served, environment

from bot.demo.github import SimulatedGitHub

BURST = 1000
DRAIN_LIMIT_S = 170.0


@dataclass(frozen=True)
class Pair:
    """The bot and the bare handler, and what both are asked."""

    ours: Target
    floor: Target
    traffic: Traffic
    process: psutil.Process
    connections: int
    seconds: int

    @property
    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system

    @property
    def memory_mb(self) -> float:
        return self.process.memory_info().rss / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--repositories", type=int, default=10)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = [f"sqlite:///{folder}/bare.db", f"sqlite:///{folder}/bot.db"]
        if options.postgres:
            urls = [stack.enter_context(postgres_server()), stack.enter_context(postgres_server())]
        asyncio.run(measure(folder, urls, options))
    return 0


async def measure(folder: Path, urls: list[str], options: argparse.Namespace) -> None:
    async with SimulatedGitHub() as github:
        made = await traffic(github, repositories=options.repositories)
        env = environment(github, folder / "data", MLM_DATABASE_URL=urls[1], MLM_SWEEP_EVERY_S="0")
        async with Served(env) as bot, bare(urls[0], github.webhook_secret) as bare_url:
            pair = Pair(
                Target(bot.url, github.webhook_secret),
                Target(bare_url, github.webhook_secret),
                made,
                psutil.Process(bot.pid),
                options.connections,
                options.seconds,
            )
            await compare(pair)
            await sustain(pair)
            await burst(pair)
            print(f"failed: {len(bot.said('task.failed_once'))}")


@contextlib.asynccontextmanager
async def bare(url: str, secret: str) -> AsyncIterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "bare_server.py"), url, secret]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def compare(pair: Pair) -> None:
    """Deliveries that need no work, ours and the bare handler's in turn."""
    ratios, rates, floors = [], [], []
    for _ in range(pair.seconds):
        one = await send(pair.ours, pair.traffic.queued, connections=pair.connections, seconds=1)
        other = await send(pair.floor, pair.traffic.queued, connections=pair.connections, seconds=1)
        assert set(one.statuses) == set(other.statuses) == {202}
        ratios.append(one.per_s / other.per_s)
        rates.append(one.per_s)
        floors.append(other.per_s)
    print(
        f"no work needed: {statistics.median(rates):.0f}/s; bare handler, one row: {statistics.median(floors):.0f}/s,"
        f" ratio (median of {len(ratios)} pairs): {statistics.median(ratios):.2f}"
    )


async def sustain(pair: Pair) -> None:
    """Deliveries that need work, taken without a pause while it is done; the bare handler before and after."""
    floors = [await send(pair.floor, pair.traffic.failed, connections=pair.connections, seconds=2)]
    cpu_s, done = pair.cpu_s, sum((await ended(pair.ours.url)).values())
    answers = await send(pair.ours, pair.traffic.failed, connections=pair.connections, seconds=pair.seconds)
    meanwhile = sum((await ended(pair.ours.url)).values()) - done
    taken = answers.statuses[202]
    show("work needed, taken while it is done", answers)
    print(
        f"  {meanwhile / answers.seconds:.0f} pieces of work ended in each of these seconds,"
        f" CPU of the bot {1000 * (pair.cpu_s - cpu_s) / taken:.1f} ms a delivery"
    )
    took_s = await drained(pair.ours.url, limit_s=DRAIN_LIMIT_S)
    print(
        f"  all done {took_s:.1f} s later, {taken / (answers.seconds + took_s):.0f} deliveries a second from end to"
        f" end, {1000 * (pair.cpu_s - cpu_s) / taken:.1f} ms of CPU each, memory {pair.memory_mb:.0f} MB"
    )
    floors.append(await send(pair.floor, pair.traffic.failed, connections=pair.connections, seconds=2))
    rate = statistics.mean(floor.per_s for floor in floors)
    p99_ms = statistics.mean(floor.percentile_ms(0.99) for floor in floors)
    print(
        f"  bare handler: {rate:.0f}/s, p99 {p99_ms:.0f} ms; ratios {answers.per_s / rate:.2f} of its rate,"
        f" {answers.percentile_ms(0.99) / p99_ms:.1f} times its p99"
    )


async def burst(pair: Pair) -> None:
    """Many at once: taken or told to come again, which they do; in the end each was worked on."""
    before = await ended(pair.ours.url)
    started = time.perf_counter()
    answers = await send(pair.ours, pair.traffic.failed, connections=200, most=BURST)
    show(f"a burst of {BURST} over 200 connections", answers)
    again = await insist(pair.ours, answers, connections=16, pause_s=2.0, limit_s=DRAIN_LIMIT_S)
    await drained(pair.ours.url, limit_s=DRAIN_LIMIT_S)
    after = await ended(pair.ours.url)
    seen = {name: after[name] - before.get(name, 0) for name in ("delivery", "diagnose")}
    print(
        f"  {again} sent again; all done {time.perf_counter() - started:.1f} s after the first; seen to the end:"
        f" {seen}, lost {BURST - min(seen.values())}, memory {pair.memory_mb:.0f} MB"
    )


def show(name: str, answers: Answers) -> None:
    print(
        f"{name}: {answers.per_s:.0f}/s, p50 {answers.percentile_ms(0.5):.0f} ms,"
        f" p99 {answers.percentile_ms(0.99):.0f} ms, {dict(answers.statuses)}"
    )


if __name__ == "__main__":
    sys.exit(main())
