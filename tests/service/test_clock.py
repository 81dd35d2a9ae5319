"""The host's clock is hours ahead and put right while the bot works: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from crash import judge, make_story
from served import Served, environment

from bot.demo.github import SimulatedGitHub

WRONG_CLOCK = (sys.executable, str(Path(__file__).parent.parent / "wrong_clock.py"))


def set_clock(off: Path, seconds: int) -> None:
    """Set it at once: it is read all the time."""
    new = off.with_name("new")
    new.write_text(str(seconds))
    new.replace(off)


@pytest.mark.timeout(300)
async def test_a_clock_that_was_hours_ahead_is_put_right_while_work_waits(tmp_path: Path) -> None:
    off = tmp_path / "off"
    set_clock(off, 0)
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        env = environment(github, tmp_path, CLOCK_OFF=str(off), MLM_SWEEP_EVERY_S="1", MLM_LABEL_DEBOUNCE_S="3")
        async with Served(env, command=WRONG_CLOCK) as bot:
            github.set_webhook_url(f"{bot.url}/webhook")
            stories = [await make_story(github, 0, "failure")]
            await github.until(lambda: judge(github, stories, green=False).clean, within_s=60)
            set_clock(off, 3 * 3600)
            stories.append(await make_story(github, 1, "label"))  # rests for three seconds before it is obeyed
            accepted = {"gh_event": "pull_request", "outcome": "accepted"}
            await github.until(lambda: any(accepted.items() <= line.items() for line in bot.said("delivery")))
            await asyncio.sleep(0.5)
            github.set_webhook_url(None)
            stories.append(await make_story(github, 2, "help"))  # missed: the sweep asks for it
            set_clock(off, 0)
            github.set_webhook_url(f"{bot.url}/webhook")
            await github.until(lambda: judge(github, stories, green=False).clean, within_s=120)
            await asyncio.sleep(1)
            verdict = judge(github, stories, green=False)
            assert verdict.clean, verdict
            assert not bot.said("task.gave_up")
