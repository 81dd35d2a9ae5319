"""What dbos leaves undone on a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

SQLITE_INDEXES = (
    "CREATE INDEX IF NOT EXISTS mlm_by_queue ON workflow_status (status, queue_name, queue_partition_key, created_at)",
    "CREATE INDEX IF NOT EXISTS mlm_by_state ON workflow_status (status, created_at)",
)


def write_ahead(database_url: str) -> None:
    """Switch a SQLite file to write-ahead logging, which dbos never does; the mode is kept in the file."""
    if not database_url.startswith("sqlite:///"):
        return
    path = Path(database_url.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def index(database_url: str) -> None:
    """Let SQLite find what waits without reading what is finished.

    dbos's own indexes hold only rows that wait, and SQLite uses such an index only for a state that stands in the
    statement itself, while dbos passes it as a parameter; with 10^6 finished rows each look read all of them.
    """
    if not database_url.startswith("sqlite:///"):
        return
    with contextlib.closing(sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=60.0)) as connection:
        for statement in SQLITE_INDEXES:
            connection.execute(statement)
        connection.commit()
