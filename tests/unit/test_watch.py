"""The watch over the database tells a trouble once, and its end once, however many meet it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path

import pytest
import structlog
from engine_harness import until

from bot.store import watch
from bot.store.watch import DatabaseAwayError, DatabaseFile, DatabaseReplacedError, Watch


class Pinged:
    """A database that is well, fails or hangs."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.asked = 0

    async def ping(self) -> None:
        self.asked += 1
        await self.hangs.wait()
        if self.error is not None:
            raise self.error


async def test_a_trouble_and_its_end_are_told_once() -> None:
    database, shown = Pinged(), list[bool]()
    watching = Watch(database.ping, show=shown.append)
    with structlog.testing.capture_logs() as lines:
        assert await watching.look() is None
        watching.refuse()
        database.error = sqlite3.OperationalError("database or disk is full")
        assert await asyncio.gather(*(watching.look() for _ in range(5))) == ["database or disk is full"] * 5
        with pytest.raises(DatabaseAwayError):
            watching.refuse()
        assert await watching.told(sqlite3.OperationalError("no"))
        assert not await watching.told(ValueError("a fault of ours"))
        database.error = None
        assert await watching.told(sqlite3.OperationalError("a connection of before")), "an aftermath"
        assert await watching.look() is None
    assert [line["event"] for line in lines] == ["database.away", "database.back"]
    assert [shown[0], *shown[-1:]] == [True, True]
    assert False in shown


async def test_what_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LIMIT_S", 0.05)
    database = Pinged()
    database.hangs.clear()
    watching = Watch(database.ping, show=lambda _: None)
    for _ in range(3):
        assert "no answer" in str(await watching.look())
    assert database.asked == 1
    database.hangs.set()
    assert await watching.look() is None


async def test_a_server_error_is_told_without_its_address() -> None:
    database = Pinged()
    database.error = ConnectionRefusedError("10.0.0.1 says no")
    assert await Watch(database.ping, show=lambda _: None).look() == "ConnectionRefusedError"


async def test_an_error_without_a_trouble_is_told_by_who_met_it() -> None:
    watching = Watch(Pinged().ping, show=lambda _: None)
    assert not await watching.told(sqlite3.OperationalError("no such column"))


async def test_a_library_that_complains_is_heard_once() -> None:
    watching = Watch(Pinged().ping, show=lambda _: None)
    looking = asyncio.create_task(watching.keep_looking())
    logger = logging.getLogger("a.library")
    logger.addFilter(watching.is_news)
    kept: list[str] = []
    logger.addHandler(handler := logging.Handler())
    handler.emit = lambda record: kept.append(record.getMessage())  # type: ignore[method-assign]
    await asyncio.sleep(0)

    def complain() -> None:
        logger.warning("something else")
        for _ in range(50):
            try:
                sqlite3.connect(":memory:").execute("SELECT * FROM gone")
            except sqlite3.OperationalError as error:
                logger.warning("polling failed: %s", error)

    with structlog.testing.capture_logs() as lines:
        await asyncio.to_thread(complain)
        await until(lambda: bool(lines))
        await asyncio.sleep(0.05)
    assert kept == ["something else"]
    told = [(line["event"], line["said"]) for line in lines]
    assert told == [("database.unsteady", "polling failed: no such table: gone")]
    looking.cancel()


def test_a_file_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mlm.db"
    path.write_bytes(b"x")
    file = DatabaseFile(f"sqlite:///{path}")
    file.learn()
    file.check()
    path.rename(tmp_path / "moved")
    with pytest.raises(DatabaseReplacedError):
        file.check()
    path.write_bytes(b"x")
    with pytest.raises(DatabaseReplacedError):
        file.check()
    server = DatabaseFile("postgresql://host/name")
    server.learn()
    server.check()
