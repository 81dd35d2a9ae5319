"""Does a delivery cost more the more were there before? With 10^3 and with 10^6 finished ones.

A finished delivery is copied in the database as often as needed; then the same number is accepted and carried out as
before, and its CPU time compared. The work itself is empty, so that only the engine is measured.

usage: python benchmarks/growth.py [--few 1000] [--many 1000000] [--deliveries 150] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from sqlalchemy import create_engine

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
    parser.add_argument("--deliveries", type=int, default=150)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    configure_logging("console")
    logging.getLogger().setLevel(logging.WARNING)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(database_url(folder, postgres=options.postgres))
        few, many, copied_s = asyncio.run(measure(url, options))
    print(f"{'PostgreSQL' if options.postgres else 'SQLite'}, {options.deliveries} deliveries accepted and carried out")
    print(f"with {options.few} stored: {few:.1f} ms of CPU each; with {options.many}: {many:.1f} ms")
    print(f"ratio: {many / few:.2f} (filled in {copied_s:.0f} s)")
    return 0


async def measure(url: str, options: argparse.Namespace) -> tuple[float, float, float]:
    async def perform(_: Task) -> list[Task]:
        return []

    async with engine(url, perform, Seen()) as running:
        await cost_ms(running, 20)  # imports and caches
        database = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        await asyncio.to_thread(fill, database, options.few)
        few = await cost_ms(running, options.deliveries)
        started = time.monotonic()
        await asyncio.to_thread(fill, database, options.many - options.few)
        copied_s = time.monotonic() - started
        many = await cost_ms(running, options.deliveries)
        database.dispose()
    return few, many, copied_s


async def cost_ms(running: DurableEngine, number: int) -> float:
    before = time.process_time()
    for _ in range(number):
        await running.accept(task(str(uuid4())))
    await idle(running)
    return 1000 * (time.process_time() - before) / number


if __name__ == "__main__":
    sys.exit(main())
