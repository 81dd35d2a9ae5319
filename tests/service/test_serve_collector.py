"""`mlm serve` keeps the garbage collector from what its start made: looking through it would hold the event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

from world import World

from bot.cli.serve import _serve

#: The modules and the parts of a started service are a few hundred thousand objects.
MOST_OF_IT = 50_000


async def test_what_the_start_made_is_kept_from_the_collector(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.github.start()
    loop = asyncio.get_running_loop()
    assert gc.get_freeze_count() < MOST_OF_IT
    serving = asyncio.create_task(_serve(world.settings))
    try:
        async with asyncio.timeout(60):
            while gc.get_freeze_count() < MOST_OF_IT and not serving.done():
                await asyncio.sleep(0.01)
        assert not serving.done(), "it serves, and has not only ended"
        assert len(gc.get_objects()) < gc.get_freeze_count(), "what is looked through is the smaller part"
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            await serving
    finally:
        gc.unfreeze()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        serving.cancel()
        await world.github.close()
