"""Told to stop while the database is locked: whoever waits for it is answered, and not left hanging."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from world import World

import bot.app
from bot.app import ADMISSION, METRICS


async def test_a_delivery_that_waits_for_the_database_is_turned_away_when_we_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot.app, "LAST_ACCEPT_S", 0.1)
    world = World(tmp_path)
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    async with world:
        pull = await world.github.open_pull(author="ada")
        await world.idle()
        app = world.app
        held = sqlite3.connect(tmp_path / "mlm.db", isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(world.github.comment(pull, "ada", "/mlm help"))
        await world.github.until(lambda: app[ADMISSION].requests == 1)
        await asyncio.sleep(0.2)  # it is on its way into the database now
        stopping = asyncio.create_task(world.stop_bot())
        await asking
        asked = world.github.deliveries[-1]
        held.execute("ROLLBACK")
        held.close()
        await stopping
        assert (asked.event, asked.status_code) == ("issue_comment", 503)
        assert app[METRICS].deliveries.labels("", "not_ready")._value.get() == 1
        await world.start_bot()
        assert await world.deliver(asked) == 202
        await world.idle()
        assert len(world.answers(pull)) == 1
