"""How fast deliveries are taken: those that need no work, against a bare handler; those that do; and a burst.

The real `mlm serve` as a process of its own; the bare handler (benchmarks/bare_server.py) verifies and writes one row.
Both are asked in turn, a second each, in one run: the ratios mean something on a busy machine, the times do not.

usage: python benchmarks/load.py [--seconds 8] [--connections 64] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from load import Answers, Target, send, varied
from postgres import postgres_server
from served import Served, environment

from bot.demo.github import SimulatedGitHub

BURST = 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--connections", type=int, default=64)
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
        github.add_repo("NVIDIA/Megatron-LM")
        pull = await github.open_pull()
        await github.start_run(pull)
        await github.label(pull, "documentation")
        payloads = {(one.event, one.action): one.payload for one in github.deliveries}
        queued = varied(payloads["workflow_job", "queued"], lambda body, n: body["workflow_job"].update(id=n))
        labeled = varied(payloads["pull_request", "labeled"], lambda body, n: body["pull_request"].update(number=n))
        env = environment(github, folder / "data", MLM_DATABASE_URL=urls[1], MLM_SWEEP_EVERY_S="0")
        async with Served(env) as bot, bare(urls[0], github.webhook_secret) as bare_url:
            ours, floor = Target(bot.url, github.webhook_secret), Target(bare_url, github.webhook_secret)
            process = psutil.Process(bot.pid)
            await compare(ours, floor, queued, options)
            await sustain(ours, labeled, process, options)
            await burst(ours, labeled, bot, process)


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


async def compare(ours: Target, floor: Target, queued: Callable[[], bytes], options: argparse.Namespace) -> None:
    ratios, rates, floors = [], [], []
    for _ in range(options.seconds):
        one = await send(ours, "workflow_job", queued, connections=options.connections, seconds=1)
        other = await send(floor, "workflow_job", queued, connections=options.connections, seconds=1)
        assert set(one.statuses) == set(other.statuses) == {202}
        ratios.append(one.per_s / other.per_s)
        rates.append(one.per_s)
        floors.append(other.per_s)
    print(
        f"no work needed: {statistics.median(rates):.0f}/s; bare handler, one row: {statistics.median(floors):.0f}/s,"
        f" ratio (median of {len(ratios)} pairs): {statistics.median(ratios):.2f}"
    )


async def sustain(
    ours: Target, labeled: Callable[[], bytes], process: psutil.Process, options: argparse.Namespace
) -> None:
    before = cpu_s(process)
    answers = await send(ours, "pull_request", labeled, connections=options.connections, seconds=options.seconds)
    show("work needed, taken while it is done", answers)
    print(
        f"  CPU of the bot: {1000 * (cpu_s(process) - before) / len(answers.took_s):.1f} ms a delivery,"
        f" memory {process.memory_info().rss / 1e6:.0f} MB"
    )


async def burst(ours: Target, labeled: Callable[[], bytes], bot: Served, process: psutil.Process) -> None:
    answers = await send(ours, "pull_request", labeled, connections=200, seconds=60, most=BURST)
    show(f"a burst of {BURST} over 200 connections", answers)
    loop = asyncio.get_running_loop()
    started = loop.time()
    while await bot.queued() and loop.time() - started < 120:
        await asyncio.sleep(0.5)
    print(
        f"  drained {loop.time() - started:.1f} s later; {await bot.queued()} left,"
        f" {len(bot.said('task.failed_once'))} failed, memory {process.memory_info().rss / 1e6:.0f} MB"
    )


def show(name: str, answers: Answers) -> None:
    print(
        f"{name}: {answers.per_s:.0f}/s, p50 {answers.percentile_ms(0.5):.0f} ms,"
        f" p99 {answers.percentile_ms(0.99):.0f} ms, {dict(answers.statuses)}"
    )


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    sys.exit(main())
