"""What is old goes by itself, in a process that has just started: finished work and files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from datetime import timedelta
from pathlib import Path

import pytest
from world import World

import bot.engine.adapter
from bot.github.shelf import files_folder

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
DAY_MS = timedelta(days=1) / timedelta(milliseconds=1)


def change(folder: Path, statement: str, *given: object) -> None:
    with contextlib.closing(sqlite3.connect(folder / "mlm.db", timeout=20)) as connection, connection:
        connection.execute(statement, given)


def ids(folder: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(folder / "mlm.db", timeout=20)) as connection:
        return {row[0] for row in connection.execute("SELECT workflow_uuid FROM workflow_status")}


async def test_old_rows_and_old_files_go_soon_after_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the work is made nine days old, all downloads two; the next start throws just those away."""
    world = World(tmp_path)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world.github:
        await world.start_bot()
        run = await world.github.start_run(await world.github.open_pull())
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.idle()
        await world.stop_bot()
        known = ids(tmp_path)
        old = {one for one in known if one.startswith(("delivery", "diagnose"))}
        assert old
        assert old < known
        change(tmp_path, "UPDATE workflow_status SET completed_at = completed_at - ? WHERE name = 'task'", 7 * DAY_MS)
        for one in old:
            change(
                tmp_path,
                "UPDATE workflow_status SET completed_at = completed_at - ? WHERE workflow_uuid = ?",
                2 * DAY_MS,
                one,
            )
        files = [path for path in files_folder(tmp_path).rglob("*") if path.is_file()]
        assert files
        for path in files:
            os.utime(path, (time.time() - 2 * 24 * 3600,) * 2)
        monkeypatch.setattr(bot.engine.adapter, "COLLECT_FIRST_S", 0.1)
        try:
            await world.start_bot()
            async with asyncio.timeout(30):
                while ids(tmp_path) & old or any(path.exists() for path in files):
                    await asyncio.sleep(0.1)
            assert ids(tmp_path) == known - old
        finally:
            await world.stop_bot()
