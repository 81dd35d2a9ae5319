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

from sqlalchemy import Engine, create_engine, inspect, text

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from engine_harness import Seen, engine, idle, task
from postgres import postgres_server

from bot.engine.adapter import Engine as DurableEngine
from bot.log import configure_logging
from handlers.context import Task

#: Where a finished delivery stands, and the column that tells it from others.
TABLES = ("workflow_status", "operation_outputs")
KEY = "workflow_uuid"


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
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = stack.enter_context(postgres_server()) if options.postgres else f"sqlite:///{folder}/engine.db"
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


def fill(database: Engine, copies: int) -> None:
    """Copy one finished delivery, with its steps, under ids of their own."""
    schema = "dbos" if database.dialect.name == "postgresql" else None
    with database.begin() as connection:
        where = f"{schema}." if schema else ""
        found = f"SELECT {KEY} FROM {where}workflow_status WHERE status = 'SUCCESS' LIMIT 1"
        one = connection.execute(text(found)).scalar_one()
        mark = uuid4().hex[:8]
        for table in TABLES:
            columns = [column["name"] for column in inspect(connection).get_columns(table, schema=schema)]
            values = [f"'{mark}-' || n" if column == KEY else column for column in columns]
            names = ", ".join(columns)
            statement = (
                f"WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < :copies) "
                f"INSERT INTO {where}{table} ({names}) SELECT {', '.join(values)} "
                f"FROM {where}{table}, counter WHERE {KEY} = :one"
            )
            connection.execute(text(statement), {"copies": copies, "one": one})


if __name__ == "__main__":
    sys.exit(main())
