"""The whole demo: the bot as `mlm serve` runs it answers on the page."""

from __future__ import annotations

import contextlib
from pathlib import Path

import aiohttp

from bot.demo.director import Director
from bot.demo.stage import raise_curtain


async def test_a_failure_is_explained_on_the_page(tmp_path: Path) -> None:
    director = Director(pace_s=0.05)
    async with contextlib.AsyncExitStack() as parts:
        url = await raise_curtain(parts, director, tmp_path, port=0)
        await director.fail("cuda-oom")
        await director.github.until(lambda: director.github.comments(director.pull, by_app=True), within_s=60)
        async with aiohttp.ClientSession() as session, session.get(f"{url}/parts") as answer:
            shown = (await answer.json())["timeline"]
    assert "GPU memory on rank 5 of 8" in shown
    assert "megatron/core/transformer/attention.py:412" in shown
