"""What dbos leaves undone on a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

#: The first SQLite whose `unixepoch` knows parts of a second. Debian 12, and so many an image, has 3.40.
SUBSECONDS_SINCE = (3, 42)

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


def lend_clock() -> None:
    """Let an older SQLite tell the time as dbos asks for it on Python 3.12: `unixepoch('subsec')`, which it knows not.

    It answers NULL without an error, and the first row that has the time as a default is refused. Counts for every
    connection of SQLAlchemy's in this process, which are dbos's and ours.
    """
    if sqlite3.sqlite_version_info < SUBSECONDS_SINCE and not event.contains(Engine, "connect", _lend_clock):
        event.listen(Engine, "connect", _lend_clock)


def _lend_clock(connection: Any, _record: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, _unix_time_s)


def _unix_time_s(asked: str) -> float:
    """Answer in seconds, to the millisecond as SQLite does.

    Raises:
        ValueError: it is asked for anything but now (SQLite makes an error of the statement).
    """
    if asked != "subsec":
        raise ValueError(asked)
    return round(time.time(), 3)
