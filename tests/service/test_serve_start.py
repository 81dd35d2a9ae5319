"""`mlm serve` starts while GitHub is away: what is ours is taken and said first, GitHub is waited for."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from served import Served, environment, refused

from bot.demo.github import SimulatedGitHub

#: Longer than `refused` waits: a start that asks GitHub first is not over in time.
AWAY_S = 60


@pytest.fixture
async def github() -> AsyncIterator[SimulatedGitHub]:
    async with SimulatedGitHub() as made:
        made.add_repo("NVIDIA/Megatron-LM")
        yield made


def leave(github: SimulatedGitHub) -> None:
    github.fail_next("GET", "/app$", "delay", delay_s=AWAY_S, times=1000)


async def ask(url: str) -> tuple[int, dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, json.loads(await answer.text())


async def test_the_probes_answer_before_github_does(github: SimulatedGitHub, tmp_path: Path) -> None:
    leave(github)
    async with Served(environment(github, tmp_path), met=False) as bot:
        assert await ask(bot.url + "/healthz") == (200, {"alive": True})
        status, said = await ask(bot.url + "/readyz")
        assert (status, said["problems"]) == (503, {"github": "not reached yet: the first call is on its way"})
        assert await bot.end(15) == 0


async def test_the_reason_why_github_is_not_there_is_told(github: SimulatedGitHub, tmp_path: Path) -> None:
    github.fail_next("GET", "/app$", status=502, times=1000)
    async with Served(environment(github, tmp_path)) as bot:
        _, said = await ask(bot.url + "/readyz")
        assert said["problems"] == {"github": "not reached yet: it answers with an error"}
        assert said["degraded"]["github_unreachable"].endswith(": it answers with an error")
        github.parts.traffic.faults.clear()
        async with asyncio.timeout(60):
            while (await ask(bot.url + "/readyz"))[0] != 200:
                await asyncio.sleep(0.2)
        told = [line["event"] for line in bot.lines if line["event"].startswith("github.")]
        assert told == ["github.trouble", "github.not_connected", "github.connected"], "once each, however many tries"


async def test_a_name_that_is_taken_is_told_without_github(github: SimulatedGitHub, tmp_path: Path) -> None:
    env = environment(github, tmp_path)
    async with Served(env):
        leave(github)
        status, said = await refused(env)
    assert status == 2
    assert "MLM_EXECUTOR_ID" in said


async def test_a_port_that_is_taken_is_told_without_github(github: SimulatedGitHub, tmp_path: Path) -> None:
    leave(github)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, said = await refused(environment(github, tmp_path, MLM_PORT=str(taken.getsockname()[1])))
    assert status == 2
    assert "MLM_HOST, MLM_PORT: cannot listen" in said
