"""What is too old to matter is deleted once in a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from bot.store.store import Database
from bot.store.watch import Watch

log = structlog.get_logger()

FORGET_EVERY_S = 6 * 3600.0
#: Soon after the start: a process that never lives for six hours forgets, too.
FORGET_FIRST_S = 90.0


async def keep_forgetting(database: Database, watch: Watch, now: Callable[[], datetime]) -> None:
    """Delete what is too old to matter, once in a while; a time that fails is told, and the next one comes anyway."""
    wait_s = FORGET_FIRST_S
    while True:
        await asyncio.sleep(wait_s)
        wait_s = FORGET_EVERY_S
        try:
            rows = await database.forget_old(now())
        except Exception as error:
            if not await watch.told(error):
                log.exception("memory.not_collected")
        else:
            log.info("memory.collected", rows=rows)
