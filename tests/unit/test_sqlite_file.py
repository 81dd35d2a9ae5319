"""What the engine needs of SQLite is there, however old the library that this Python was built with."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, exc, text

from bot.engine import sqlite_file


def test_a_row_gets_the_time_that_dbos_asks_for_on_a_newer_python(tmp_path: Path) -> None:
    """As dbos 3.4 declares its columns from Python 3.12 on; SQLite 3.40, of Debian 12, answers NULL by itself."""
    sqlite_file.lend_clock()
    sqlite_file.lend_clock()
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    before_ms = time.time() * 1000
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE t (id INTEGER, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
        )
        connection.execute(text("INSERT INTO t (id) VALUES (1)"))
        (at_ms,) = connection.execute(text("SELECT at FROM t")).one()
    assert before_ms - 1 <= at_ms <= time.time() * 1000 + 1
    engine.dispose()


def test_only_an_older_sqlite_is_lent_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[str] = []
    monkeypatch.setattr(event, "contains", lambda *_: False)
    monkeypatch.setattr(event, "listen", lambda _target, name, _function: lent.append(name))
    for version, expected in (((3, 42, 0), []), ((3, 41, 2), ["connect"])):
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        sqlite_file.lend_clock()
        assert lent == expected, version


@pytest.mark.skipif(
    sqlite3.sqlite_version_info >= sqlite_file.SUBSECONDS_SINCE, reason="SQLite's own clock is used, for any question"
)
def test_the_lent_clock_answers_no_other_question(tmp_path: Path) -> None:
    sqlite_file.lend_clock()
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    with engine.connect() as connection, pytest.raises(exc.OperationalError, match="user-defined function"):
        connection.execute(text("SELECT unixepoch('2026-01-01')"))
    engine.dispose()
