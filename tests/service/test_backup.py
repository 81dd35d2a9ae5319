"""A copy of the database, made while the bot works and put back later: nothing is done twice, nothing is forgotten."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from world import World

from bot.engine.sweep import Rounds

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n"
RERUNS = r"/actions/runs/\d+/rerun"


async def test_a_backup_is_restored(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    copy = tmp_path / "copy.db"
    async with world:
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        failed = await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.finish_run(run)
        await world.idle(within_s=60)
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "data" / "mlm.db")) as live,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            live.backup(target)
        # What follows is not in the copy.
        asked = await world.github.comment(pull, "ada", "/mlm rerun unit models")
        await world.idle()
        answers = world.answers(pull)
        assert len(answers) == 2
        await world.stop_bot()
        for left in (tmp_path / "data").glob("mlm.db*"):
            left.unlink()
        copy.rename(tmp_path / "data" / "mlm.db")
        world.rounds = Rounds(every_s=0)
        await world.start_bot()
        assert await world.deliver(failed) == 202
        told = next(one for one in world.github.deliveries if one.payload.get("comment", {}).get("id") == asked.id)
        assert await world.deliver(told) == 202
        await world.idle(within_s=60)
        assert len(world.answers(pull)) == 2
        assert len(world.github.asked("POST", "/rerun")) == 1, "the run is in progress: it is not started again"
        assert run.attempt_number == 2
