"""A copy of the database, made while the bot works and put back later: nothing is done twice, nothing is forgotten."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from postgres import PostgresProcess
from world import World

from bot.engine.sweep import Rounds

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n"
RERUNS = r"/actions/runs/\d+/rerun"


class Backup(Protocol):
    """What docs/operating.md tells an operator to do."""

    url: str

    def take(self) -> None: ...
    def put_back(self) -> None: ...


class SqliteBackup:
    """The online copy of SQLite, as `.backup` makes it."""

    def __init__(self, folder: Path) -> None:
        self._file, self._copy = folder / "mlm.db", folder / "copy"
        self.url = f"sqlite:///{self._file}"

    def take(self) -> None:
        with (
            contextlib.closing(sqlite3.connect(self._file)) as live,
            contextlib.closing(sqlite3.connect(self._copy)) as target,
        ):
            live.backup(target)

    def put_back(self) -> None:
        for left in self._file.parent.glob("mlm.db*"):
            left.unlink()
        self._copy.rename(self._file)


class PostgresBackup:
    """`pg_dump`, and `pg_restore` into an empty database."""

    def __init__(self, server: PostgresProcess) -> None:
        self._server = server
        self.url = server.url

    def take(self) -> None:
        self._run("pg_dump", "--format=custom", "--file=copy", "mlm")

    def put_back(self) -> None:
        self._run("dropdb", "mlm")
        self._run("createdb", "mlm")
        self._run("pg_restore", "--dbname=mlm", "--exit-on-error", "copy")

    def _run(self, program: str, *words: str) -> None:
        self._server.run(program, "--host", str(self._server.folder), "--username", "mlm", *words)


@pytest.fixture(params=["sqlite", "postgresql"])
def backup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backup]:
    if request.param == "sqlite":
        yield SqliteBackup(tmp_path)
        return
    with PostgresProcess.started() as server:
        yield PostgresBackup(server)


async def test_a_backup_is_restored(tmp_path: Path, backup: Backup) -> None:
    world = World(tmp_path / "data", database_url=backup.url)
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    async with world:
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        failed = await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.finish_run(run)
        await world.idle(within_s=60)
        backup.take()
        # What follows is not in the copy.
        asked = await world.github.comment(pull, "ada", "/mlm rerun unit models")
        await world.idle()
        answers = world.answers(pull)
        assert len(answers) == 2
        await world.stop_bot()
        backup.put_back()
        world.rounds = Rounds(every_s=0)
        await world.start_bot()
        assert await world.deliver(failed) == 202
        told = next(one for one in world.github.deliveries if one.payload.get("comment", {}).get("id") == asked.id)
        assert await world.deliver(told) == 202
        await world.idle(within_s=60)
        assert len(world.answers(pull)) == 2
        assert len(world.github.asked("POST", "/rerun")) == 1, "the run is in progress: it is not started again"
        assert run.attempt_number == 2
