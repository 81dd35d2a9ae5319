"""The demo's page shows the bot's check run, and its buttons reach the bot as webhooks."""

from __future__ import annotations

import contextlib
import re
from functools import partial
from pathlib import Path

import aiohttp

from bot.demo.director import Director
from bot.demo.stage import raise_curtain

BUTTON = re.compile(r'data-check="(\d+)" data-button="([a-z-]+)" data-as="grace"')


def has_said(director: Director, words: str) -> bool:
    return any(words in comment.body for comment in director.github.comments(director.pull, by_app=True))


async def test_the_check_of_a_failure_has_three_buttons_that_work(tmp_path: Path) -> None:
    director = Director(pace_s=0.05)
    github = director.github
    async with contextlib.AsyncExitStack() as parts, aiohttp.ClientSession() as session:
        url = await raise_curtain(parts, director, tmp_path, port=0)

        async def act(action: str, **asked: str) -> int:
            async with session.post(f"{url}/act/{action}", json=asked, headers={"X-Demo": "1"}) as answer:
                return answer.status

        async def shown() -> str:
            async with session.get(f"{url}/parts") as answer:
                return str((await answer.json())["checks"])

        assert "mlm-bot / diagnosis" not in await shown()
        assert await act("fail", failure="cuda-oom") == 200
        await github.until(lambda: director.newest_run().status == "completed", within_s=30)
        await github.until(lambda: github.checks(director.pull), within_s=60)
        page = await shown()
        assert "<b>mlm-bot / diagnosis</b>" in page
        check = github.checks(director.pull)[-1]
        assert check.title is not None
        assert check.title in page.replace("&#39;", "'")
        assert BUTTON.findall(page) == [(str(check.id), name) for name in ("rerun-failed", "analyze", "mute")]
        for name in ("analyze", "rerun-failed", "mute"):
            assert await act("press", **{"check": str(check.id), "button": name, "as": "grace"}) == 200
        for label in ("Re-analyze", "Re-run failed", "Mute"):
            await github.until(partial(has_said, director, f"`grace` pressed “{label}”."), within_s=60)
        assert director.newest_run().attempt_number == 2
        assert "mlm-silenced" in director.pull.labels
        assert await act("press", **{"check": str(check.id), "button": "no-such", "as": "grace"}) == 400
        assert await act("press", **{"check": "1", "button": "mute", "as": "grace"}) == 400
