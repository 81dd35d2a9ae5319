"""The database is away, full, or no longer there: what was accepted is done, the rest refused, and it is said once."""

from __future__ import annotations

import asyncio
import resource
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from postgres import PostgresProcess
from served import Served, environment

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Delivery, Pull

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n"
UNWELL = {"warning", "error", "critical"}


@pytest.fixture
async def github() -> AsyncIterator[SimulatedGitHub]:
    async with SimulatedGitHub() as made:
        made.add_repo("NVIDIA/Megatron-LM")
        made.add_user("ada", "write")
        yield made


async def asked(bot: Served, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(bot.url + path) as answer:
        return answer.status, await answer.text()


async def until_ready(bot: Served, status: int, words: str = "") -> None:
    async with asyncio.timeout(60):
        while (found := await asked(bot, "/readyz"))[0] != status or words not in found[1]:
            await asyncio.sleep(0.1)


def comments(github: SimulatedGitHub, pull: Pull) -> list[str]:
    return [comment.body for comment in github.comments(pull, by_app=True)]


def refused(github: SimulatedGitHub) -> list[Delivery]:
    return [one for one in github.deliveries if one.status_code == 503]


def alarms(bot: Served) -> list[str]:
    return [line["event"] for line in bot.lines if line["level"] in UNWELL]


@pytest.mark.timeout(240)
async def test_a_server_that_is_gone_and_comes_back(github: SimulatedGitHub, tmp_path: Path) -> None:
    with PostgresProcess.started() as server:
        env = environment(github, tmp_path, MLM_DATABASE_URL=server.url, MLM_SWEEP_EVERY_S="1")
        async with Served(env) as bot:
            github.set_webhook_url(f"{bot.url}/webhook")
            pull = await github.open_pull(author="ada")
            run = await github.start_run(pull)
            await asyncio.to_thread(server.stop)
            await until_ready(bot, 503, "database")
            assert "mlm_database_up 0.0" in (await asked(bot, "/metrics"))[1]
            before = len(github.deliveries)
            for _ in range(3):
                await github.comment(pull, "ada", "/mlm help")
            await github.finish_job(run, JOB, "failure", log=FAILURE)
            assert {one.status_code for one in github.deliveries[before:] if one.event == "issue_comment"} == {503}
            await asyncio.sleep(2)
            assert alarms(bot) == ["database.away"]
            assert {line["level"] for line in bot.said("delivery")} == {"info"}
            await asyncio.to_thread(server.start)
            await until_ready(bot, 200)
            assert "mlm_database_up 1.0" in (await asked(bot, "/metrics"))[1]
            await github.until(lambda: len(comments(github, pull)) == 4, within_s=120)
            await asyncio.sleep(1)
            assert len(comments(github, pull)) == 4
            assert alarms(bot)[:2] == ["database.away", "database.back"]
            assert {*alarms(bot)[2:]} <= {"sweep.redelivered", "engine.rescued"}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_taken_away(github: SimulatedGitHub, tmp_path: Path, replaced: bool) -> None:
    """Nothing that is written into it would be kept: the bot ends, and the next one finds what was missed."""
    env = environment(github, tmp_path, MLM_SWEEP_EVERY_S="1")
    async with Served(env) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        pull = await github.open_pull()
        run = await github.start_run(pull)
        await github.until(lambda: bot.said("sweep.rescan"), within_s=30)
        database = tmp_path / "mlm.db"
        if replaced:
            shutil.copy(database, tmp_path / "copy.db")
            (tmp_path / "copy.db").replace(database)
        else:
            database.unlink()
        before = len(bot.said("delivery"))
        await github.finish_job(run, JOB, "failure", log=FAILURE)
        assert refused(github)
        assert "accepted" not in {line["outcome"] for line in bot.said("delivery")[before:]}
        assert await bot.end(0) == 1, "by itself"
        assert [line["why"] for line in bot.said("database.away")] == [
            "the database's file was deleted or replaced while the bot ran"
        ]
        assert "start it again" in "".join(bot.noise)
    async with Served(env) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        await github.until(lambda: comments(github, pull), within_s=60)
        assert await bot.end(signal.SIGTERM) == 0


@pytest.mark.timeout(240)
async def test_a_full_disk_shows_before_anything_is_written(github: SimulatedGitHub, tmp_path: Path) -> None:
    async with Served(environment(github, tmp_path, MLM_SWEEP_EVERY_S="1")) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        await until_ready(bot, 200)
        before = resource.prlimit(bot.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, (1, before[1]))
        await until_ready(bot, 503, "database")
        pull = await github.open_pull()
        await github.comment(pull, "ada", "/mlm help")
        assert refused(github)
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, before)
        await until_ready(bot, 200)
        await github.until(lambda: comments(github, pull), within_s=60)
        assert len(bot.said("database.away")) == len(bot.said("database.back")) == 1
