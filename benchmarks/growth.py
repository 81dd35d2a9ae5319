"""Does a delivery cost more the more were there before? With 10^3 and with 10^6 finished ones.

Two engines, each a process on a database of its own, in which one finished delivery is copied as often as needed. They
take turns, so that whatever else the machine does meets both; the ratio is the median of the turns. The work itself is
empty, so that only the engine is measured: its CPU time and, of a PostgreSQL of the benchmark's own, the server's.

usage: python benchmarks/growth.py [--few 1000] [--many 1000000] [--deliveries 40] [--turns 9] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import psutil
from sqlalchemy import create_engine, text

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from engine_harness import Seen, engine, idle, task
from growth_rows import fill
from postgres import database_url

from bot.engine.adapter import Engine as DurableEngine
from bot.log import configure_logging
from handlers.context import Task


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--deliveries", type=int, default=40)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--stored", type=int, help=argparse.SUPPRESS)  # one of the two processes
    options = parser.parse_args()
    if options.stored is None:
        compare(options)
        return 0
    configure_logging("console")
    logging.getLogger().setLevel(logging.WARNING)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(database_url(folder, postgres=options.postgres))
        asyncio.run(take_turns(url, options))
    return 0


def compare(options: argparse.Namespace) -> None:
    with engine_with(options.few, options) as few, engine_with(options.many, options) as many:
        pairs = []
        for number in range(options.turns + 1):
            both = [few, many] if number % 2 else [many, few]
            cost = {one: ask(one) for one in both}
            if number:  # the first turn brings what was just written into the caches
                pairs.append((cost[few], cost[many]))
    ratios = [m / f for f, m in pairs]
    print(f"{'PostgreSQL' if options.postgres else 'SQLite'}, {options.deliveries} deliveries in each turn")
    for number, costs in zip((options.few, options.many), zip(*pairs, strict=True), strict=True):
        print(f"with {number} stored: {statistics.median(costs):.1f} ms of CPU each")
    print(f"ratio: {statistics.median(ratios):.2f} (median; {min(ratios):.2f} to {max(ratios):.2f})")


@contextlib.contextmanager
def engine_with(stored: int, options: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    """Start the process, and wait until its database is filled."""
    arguments = ["--stored", str(stored), "--deliveries", str(options.deliveries)]
    command = [sys.executable, __file__, *arguments, *(["--postgres"] if options.postgres else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        print(f"filled with {stored} in {answer_of(process):.0f} s", flush=True)
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: subprocess.Popen[str]) -> float:
    """Let it take one turn; return the milliseconds of CPU for each delivery."""
    assert process.stdin is not None
    print("go", file=process.stdin, flush=True)
    return answer_of(process)


def answer_of(process: subprocess.Popen[str]) -> float:
    assert process.stdout is not None
    return float(process.stdout.readline())


async def take_turns(url: str, options: argparse.Namespace) -> None:
    """Be one of the two: fill the database, then answer each line of standard input with the cost of one turn."""

    async def perform(_: Task) -> list[Task]:
        return []

    async with engine(url, perform, Seen()) as running:
        await cost_ms(running, 20, url)  # imports and caches
        started = time.monotonic()
        await asyncio.to_thread(fill_and_settle, url, options.stored)
        print(time.monotonic() - started, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(await cost_ms(running, options.deliveries, url), flush=True)


def fill_and_settle(url: str, copies: int) -> None:
    """Have the server look through the new rows now and not while we measure."""
    database = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    fill(database, copies)
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(
            text("VACUUM ANALYZE" if url.startswith("postgresql") else "PRAGMA wal_checkpoint(TRUNCATE)")
        )
    database.dispose()


async def cost_ms(running: DurableEngine, number: int, url: str) -> float:
    before = time.process_time() + server_s(url)
    for _ in range(number):
        await running.accept(task(str(uuid4())))
    await idle(running)
    return 1000 * (time.process_time() + server_s(url) - before) / number


def server_s(url: str) -> float:
    """Return the CPU seconds that the database's server has taken; 0 without one, or with one that is not ours."""
    folder = parse_qs(urlsplit(url).query).get("host", [""])[0]
    written = Path(folder, "db", "postmaster.pid")
    if not folder or not written.exists():
        return 0.0
    server = psutil.Process(int(written.read_text().split("\n", 1)[0]))
    times = [one.cpu_times() for one in (server, *server.children())]
    return sum(one.user + one.system for one in times) + times[0].children_user + times[0].children_system


if __name__ == "__main__":
    sys.exit(main())
