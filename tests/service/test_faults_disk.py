"""The database's disk: locked by somebody, and full. Deliveries are refused, not lost; the work goes on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from served import Served, environment

from bot.demo.github import SimulatedGitHub

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n"


@pytest.fixture
async def github() -> AsyncIterator[SimulatedGitHub]:
    async with SimulatedGitHub() as made:
        made.add_repo("NVIDIA/Megatron-LM")
        yield made


async def ready(bot: Served) -> tuple[int, dict[str, object]]:
    async with aiohttp.ClientSession() as session, session.get(bot.url + "/readyz") as answer:
        return answer.status, await answer.json()


@pytest.mark.timeout(240)
async def test_sqlite_locked_by_somebody_else(github: SimulatedGitHub, tmp_path: Path) -> None:
    async with Served(environment(github, tmp_path, MLM_SWEEP_EVERY_S="1")) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        pull = await github.open_pull()
        run = await github.start_run(pull)
        with contextlib.closing(sqlite3.connect(tmp_path / "mlm.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await github.finish_job(run, JOB, "failure", log=FAILURE)
            refused = [one for one in github.deliveries if one.event == "workflow_job" and not one.ok]
            assert [one.status_code for one in refused] == [503]
            told = {line["outcome"] for line in bot.said("delivery") if line["status"] == 503}
            # Our patience with the lock and SQLite's own end at about one time, and the sweep asks again meanwhile.
            assert told, "refused, and not for another reason"
            assert told <= {"busy", "not_stored"}
            other.execute("ROLLBACK")
        await github.until(lambda: github.comments(pull, by_app=True), within_s=60)
        assert (await ready(bot))[0] == 200


@pytest.mark.timeout(240)
async def test_a_full_disk(github: SimulatedGitHub, tmp_path: Path) -> None:
    """No file of the process may grow any more, which is what a full disk means to it; then there is room again."""
    async with Served(environment(github, tmp_path, MLM_SWEEP_EVERY_S="1")) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        pull = await github.open_pull()
        run = await github.start_run(pull)
        before = resource.prlimit(bot.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, (1, before[1]))
        await github.finish_job(run, JOB, "failure", log=FAILURE)
        refused = [one for one in github.deliveries if one.event == "workflow_job" and not one.ok]
        assert [one.status_code for one in refused] == [503]
        assert {line["outcome"] for line in bot.said("delivery") if line["status"] == 503} <= {"not_stored", "busy"}
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, before)
        await github.until(lambda: github.comments(pull, by_app=True), within_s=120)
        await asyncio.sleep(1)
        assert len(github.comments(pull, by_app=True)) == 1
        assert (await ready(bot))[0] == 200
