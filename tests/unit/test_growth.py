"""What a delivery costs does not depend on how many were there before: no look reads what is finished."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from engine_harness import Seen, engine, idle, task
from growth_rows import TABLES, fill

from handlers.context import Task

STORED = 2000


@contextmanager
def noted() -> Iterator[dict[str, Any]]:
    """Note each statement that any database of this process is given, with its parameters."""
    statements: dict[str, Any] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.setdefault(statement, parameters)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def plan(connection: sqlite3.Connection, statement: str, parameters: Any) -> list[str]:
    if statement.lstrip().upper().startswith(("PRAGMA", "CREATE", "BEGIN")):
        return []
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]


async def test_no_look_reads_what_is_finished(tmp_path: Path) -> None:
    async def perform(one: Task) -> Sequence[Task]:
        return [task(f"{one.key}-report", name="report", pull=1)] if one.name == "delivery" else []

    seen = Seen()
    async with engine(tmp_path, perform, seen, rescue_every_s=0.2) as running:
        await running.accept(task("first"))
        await idle(running)
        database = sa.create_engine(f"sqlite:///{tmp_path}/engine.db")
        await asyncio.to_thread(fill, database, STORED)
        database.dispose()
        with noted() as statements:
            for number in range(5):
                assert await running.accept(task(f"k{number}"))
            assert not await running.accept(task("k1"))
            await idle(running)
            await asyncio.sleep(0.5)  # a round of the rescuer
    assert {(f"k{number}-report", "done") for number in range(5)} < set(seen.outcomes)
    with closing(sqlite3.connect(tmp_path / "engine.db")) as connection:
        stored = connection.execute("SELECT count(*) FROM workflow_status").fetchone()[0]
        assert stored > STORED
        plans = {statement: plan(connection, statement, given) for statement, given in statements.items()}
    reads_all = {
        statement: step
        for statement, steps in plans.items()
        for step in steps
        if any(step.startswith(f"SCAN main.{table}") for table in TABLES)
    }
    assert sum(bool(steps) for steps in plans.values()) > 10
    assert reads_all == {}
