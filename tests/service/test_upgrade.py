"""From one release to the next with work in flight, on one PostgreSQL, and what becomes of the way back."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from crash import judge, make_story
from postgres import postgres_server
from served import Served, environment, refused

from bot.demo.github import SimulatedGitHub
from bot.store.tables import SCHEMA_VERSION

NEXT = (sys.executable, str(Path(__file__).parent.parent / "next_release.py"))


@pytest.fixture
def database() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def schema_of(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT version FROM mlm_schema").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_the_next_release_finishes_what_this_one_began(
    tmp_path: Path, database: str, end: signal.Signals
) -> None:
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        shared = {"MLM_DATABASE_URL": database, "MLM_SWEEP_EVERY_S": "1"}
        old_env = environment(github, tmp_path / "old", MLM_EXECUTOR_ID="old", **shared)
        new_env = environment(github, tmp_path / "new", MLM_EXECUTOR_ID="new", **shared)
        async with Served(old_env) as old:
            github.set_webhook_url(f"{old.url}/webhook")
            github.fail_next("GET", r"/repos/", "delay", delay_s=2.0, times=6)
            stories = [await make_story(github, number, kind) for number, kind in enumerate(("failure", "rerun"))]
            await github.until(lambda: github.asked("GET", "/repos/"), within_s=30)
            async with Served(new_env, command=NEXT) as new:
                assert schema_of(database) == SCHEMA_VERSION + 1
                github.set_webhook_url(f"{new.url}/webhook")
                # Both take from the same queues: the old one meets what it does not know, and leaves it to the new one.
                stories += [await make_story(github, 10 + number, "help") for number in range(2)]
                await asyncio.sleep(1)
                assert await old.end(end) == (0 if end is signal.SIGTERM else -signal.SIGKILL)
                with contextlib.suppress(TimeoutError):
                    await github.until(lambda: judge(github, stories, green=False).clean, within_s=60)
                await asyncio.sleep(1)
                verdict = judge(github, stories, green=False)
                assert verdict.clean, verdict
                assert not [*old.said("task.gave_up"), *new.said("task.gave_up"), *old.said("task.failed_once")]
        status, said = await refused(old_env)
        assert status == 2
        assert f"the database has schema {SCHEMA_VERSION + 1}, this release knows {SCHEMA_VERSION}" in said
        assert "Traceback" not in said
