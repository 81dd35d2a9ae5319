"""What waits at the same time is stored together, as dbos itself would have stored it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from engine_harness import Seen, engine, idle, task

from bot.engine.adapter import EndingError, Engine
from handlers.context import Task

#: What differs from one row to the next, and the id of an application in dbos's own cloud, which nothing reads.
OWN = {"workflow_uuid", "created_at", "updated_at", "creator_xid", "executor_id", "application_id"}


async def nothing(_: Task) -> Sequence[Task]:
    return []


def row(folder: Path, key: str) -> dict[str, Any]:
    connection = sqlite3.connect(folder / "engine.db")
    connection.row_factory = sqlite3.Row
    with contextlib.closing(connection):
        found = connection.execute(
            "SELECT s.*, i.inputs AS given FROM workflow_status s JOIN workflow_input i USING (workflow_uuid)"
            " WHERE workflow_uuid LIKE ?",
            (f"%:{key}",),
        ).fetchone()
    return {name: found[name] for name in found.keys() if name not in OWN}  # noqa: SIM118 (a row is no mapping)


def statements(running: Engine, kind: str) -> list[str]:
    """Collect what the intake's connection is told: "commit" or "rollback"."""
    told: list[str] = []
    sa.event.listen(running._intake._database, kind, lambda _: told.append(kind))
    return told


async def test_a_row_is_the_one_that_dbos_writes(tmp_path: Path) -> None:
    from bot.engine.workflows import enqueue

    async with engine(tmp_path, nothing, Seen(), polling_s=60.0) as running:
        later = {"name": "rescan", "odd": "\ud800 \0 é"}
        for make in (task, lambda key: task(key, name="report", pull=7, x=later)):
            assert await running.accept(make("ours"))
            await enqueue(make("dbos"), only_new=True)
            ours, theirs = row(tmp_path, "ours"), row(tmp_path, "dbos")
            assert ours.pop("given").replace("ours", "dbos") == theirs.pop("given")
            assert ours == theirs
            assert ours["status"] == "ENQUEUED"
            with contextlib.closing(sqlite3.connect(tmp_path / "engine.db")) as connection, connection:
                connection.execute("DELETE FROM workflow_status")
                connection.execute("DELETE FROM workflow_input")


async def test_many_at_once_are_few_commits_and_none_is_lost(tmp_path: Path) -> None:
    seen = Seen()
    async with engine(tmp_path, nothing, seen) as running:
        commits = statements(running, "commit")
        keys = [f"k{number % 40}" for number in range(60)]
        new = await asyncio.gather(*(running.accept(task(key)) for key in keys))
        assert new.count(True) == 40
        assert len(commits) <= 10
        await idle(running)
    assert sorted(seen.outcomes) == sorted((f"k{number}", "done") for number in range(40))


async def test_a_transaction_that_fails_is_tried_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    async with engine(tmp_path, nothing, seen) as running:
        await running.accept(task("known"))

        def broken(*_: object) -> list[bool]:
            raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("disk I/O error"))

        monkeypatch.setattr(running._intake, "_write", broken)
        new = await asyncio.gather(*(running.accept(task(key)) for key in ("a", "known", "b")))
        assert new == [True, False, True]
        await idle(running)
    assert {key for key, _ in seen.outcomes} == {"a", "known", "b"}


async def test_who_gave_up_waiting_is_not_stored(tmp_path: Path) -> None:
    """It was told that it is not stored, and comes again; the others are stored once the database is free."""
    seen = Seen()
    async with engine(tmp_path, nothing, seen) as running:
        other = sqlite3.connect(tmp_path / "engine.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(running.accept(task("first")))
        await asyncio.sleep(0.2)
        waiting, given_up = (asyncio.create_task(running.accept(task(key))) for key in ("waiting", "given-up"))
        await asyncio.sleep(0.2)
        given_up.cancel()
        await asyncio.wait([given_up])
        other.execute("ROLLBACK")
        other.close()
        async with asyncio.timeout(60):
            assert await asyncio.gather(first, waiting) == [True, True]
        await idle(running)
        assert {key for key, _ in seen.outcomes} == {"first", "waiting"}
        assert await running.accept(task("given-up"))
        await idle(running)


async def test_one_that_cannot_be_stored_keeps_nobody_waiting(tmp_path: Path) -> None:
    seen = Seen()
    async with engine(tmp_path, nothing, seen) as running:
        odd = "x" * 300
        async with asyncio.timeout(60):
            got = await asyncio.gather(*(running.accept(task(key)) for key in ("a", odd, "b")), return_exceptions=True)
            assert (got[0], type(got[1]), got[2]) == (True, ValueError, True)
            assert await running.accept(task("afterwards"))
            await idle(running)


async def test_one_that_waits_for_the_database_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bot.engine import intake

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    async with engine(tmp_path, nothing, Seen()) as running:
        write = running._intake._write

        def broken(_: object) -> list[bool]:
            monkeypatch.setattr(running._intake, "_write", write)
            raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))

        monkeypatch.setattr(running._intake, "_write", broken)
        monkeypatch.setattr(intake, "enqueue", never)
        stuck = asyncio.create_task(running.accept(task("stuck")))
        async with asyncio.timeout(60):
            await asyncio.sleep(0.1)
            assert await running.accept(task("next"))
        assert not stuck.done()
    with pytest.raises(EndingError):
        await stuck


async def test_who_waits_when_the_engine_stops_is_answered_at_once(tmp_path: Path) -> None:
    """The database is locked for as long as that takes, and nobody is left to GitHub's patience."""
    seen = Seen()
    async with engine(tmp_path, nothing, seen) as running:
        other = sqlite3.connect(tmp_path / "engine.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(running.accept(task("being-written")))]
        await asyncio.sleep(0.2)
        waiting += [asyncio.create_task(running.accept(task(key))) for key in ("in-line", "behind")]
        await asyncio.sleep(0)
        running.turn_away()
        async with asyncio.timeout(2):  # less than SQLite waits for the lock
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [EndingError] * 3
        with pytest.raises(EndingError):
            await running.accept(task("late"))
        other.execute("ROLLBACK")
        other.close()
    assert not {key for key, _ in seen.outcomes} & {"in-line", "behind", "late"}
