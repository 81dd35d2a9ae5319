"""`mlm serve` as operators run it: refusals at the start, kill -9, SIGTERM, two of one name."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from served import Served, environment, refused

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

JOB = "tests/unit_tests/models/**/*.py - latest"
COMMENTS = r"/issues/\d+/comments$"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"


@pytest.fixture
async def github() -> AsyncIterator[SimulatedGitHub]:
    async with SimulatedGitHub() as made:
        made.add_repo("NVIDIA/Megatron-LM")
        made.add_user("ada", "write")
        yield made


async def fail_a_job(github: SimulatedGitHub, bot: Served) -> Pull:
    github.set_webhook_url(f"{bot.url}/webhook")
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_job(run, JOB, "failure", log=FAILURE)
    return pull


async def test_a_start_without_settings_names_each_of_them() -> None:
    status, said = await refused({"PATH": "/usr/bin"})
    assert status == 2
    assert [line.split()[0].rstrip(":") for line in said.splitlines()] == [
        "MLM_GITHUB_APP_ID",
        "MLM_GITHUB_PRIVATE_KEY",
        "MLM_GITHUB_WEBHOOK_SECRET",
    ]


async def test_a_key_of_another_app_is_refused_by_name(github: SimulatedGitHub, tmp_path: Path) -> None:
    other = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    status, said = await refused(environment(github, tmp_path, MLM_GITHUB_PRIVATE_KEY=other.decode()))
    assert status == 2
    assert "MLM_GITHUB_PRIVATE_KEY" in said
    assert "401" in said
    assert "Traceback" not in said


async def test_a_database_that_is_not_there_is_named_without_its_password(
    github: SimulatedGitHub, tmp_path: Path
) -> None:
    url = "postgresql://mlm:hunter2hunter2@127.0.0.1:1/mlm"
    status, said = await refused(environment(github, tmp_path, MLM_DATABASE_URL=url))
    assert status == 2
    assert "MLM_DATABASE_URL" in said
    assert "hunter2" not in said
    assert "Traceback" not in said


async def test_a_second_process_of_the_same_name_refuses(github: SimulatedGitHub, tmp_path: Path) -> None:
    env = environment(github, tmp_path)
    async with Served(env):
        status, said = await refused(env)
    assert status == 2
    assert "MLM_EXECUTOR_ID" in said
    assert "Traceback" not in said


async def test_kill_9_in_the_middle_of_the_work(github: SimulatedGitHub, tmp_path: Path) -> None:
    """The process dies while its comment is on the way: the next one finishes the work, and there is one comment."""
    env = environment(github, tmp_path)
    github.fail_next("POST", COMMENTS, "delay", delay_s=1.0)
    async with Served(env) as bot:
        pull = await fail_a_job(github, bot)
        await github.until(lambda: github.asked("POST", COMMENTS), within_s=30)
        await bot.end(signal.SIGKILL)
    async with Served(env) as bot:
        github.set_webhook_url(f"{bot.url}/webhook")
        await github.until(lambda: bot.said("comment.unchanged") or bot.said("comment.edited") or github.comments(pull))
        await asyncio.sleep(3)
        assert len(github.comments(pull, by_app=True)) == 1
        assert not bot.said("task.failed_once")


async def test_kill_9_before_anything_was_done(github: SimulatedGitHub, tmp_path: Path) -> None:
    env = environment(github, tmp_path)
    async with Served(env) as bot:
        github.fail_next("*", r"/repos/", "delay", delay_s=30, times=100)
        pull = await fail_a_job(github, bot)
        await bot.end(signal.SIGKILL)
        assert not github.comments(pull)
    github.parts.traffic.faults.clear()
    async with Served(env):
        await github.until(lambda: github.comments(pull, by_app=True), within_s=30)


async def test_sigterm_keeps_what_was_taken(github: SimulatedGitHub, tmp_path: Path) -> None:
    """A stop is clean and quick even while GitHub does not answer; the work is done after the next start."""
    env = environment(github, tmp_path)
    async with Served(env) as bot:
        github.fail_next("*", r"/repos/", "delay", delay_s=60, times=100)
        pull = await fail_a_job(github, bot)
        started = time.monotonic()
        assert await bot.end(signal.SIGTERM) == 0
        assert time.monotonic() - started < 10
        assert bot.said("serve.stopped")
        assert not bot.noise
    github.parts.traffic.faults.clear()
    async with Served(env):
        await github.until(lambda: github.comments(pull, by_app=True), within_s=30)


async def test_an_idle_bot_stops_at_once(github: SimulatedGitHub, tmp_path: Path) -> None:
    async with Served(environment(github, tmp_path)) as bot:
        started = time.monotonic()
        assert await bot.end(signal.SIGINT) == 0
        assert time.monotonic() - started < 10
        assert not bot.noise
