"""GitHub was away for long enough that all work waits its longest pause: once it is back, nobody waits for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from world import World

from bot.app import CONTEXTS
from bot.engine import workflows

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"


def away(world: World) -> None:
    world.github.fail_next("*", ".", status=503, times=100_000)


def locked_out(world: World) -> None:
    world.github.expire_tokens()
    world.github.fail_next("*", "^/app", status=401, message="A JSON web token could not be decoded", times=100_000)


@pytest.mark.parametrize("begin", [away, locked_out])
async def test_what_was_put_off_begins_when_github_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: Callable[[World], None]
) -> None:
    monkeypatch.setattr(workflows, "pause_s", lambda *_: workflows.LONGEST_PAUSE_S)
    world = World(tmp_path)
    world.limits = replace(world.limits, look_every_s=0.3, calm_s=0.3)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        pulls = [await world.github.open_pull(author="ada") for _ in range(3)]
        runs = [await world.github.start_run(pull) for pull in pulls]
        await world.idle()
        world.app[CONTEXTS]._configs.clear()
        begin(world)
        for run in runs:
            await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.until(lambda: world.tasks_done("delivery", "put_off") >= 3, within_s=60)
        assert not any(world.answers(pull) for pull in pulls)
        with structlog.testing.capture_logs() as said:
            world.github.parts.traffic.faults.clear()
            await world.github.until(lambda: all(world.answers(pull) for pull in pulls), within_s=60)
        assert [line["kind"] for line in said if line["event"] == "github.trouble_over"] != []
        assert sum(line["tasks"] for line in said if line["event"] == "engine.hurried") >= 3
