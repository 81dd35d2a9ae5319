"""A failed job with a large artifact: what travels, from a storage whose addresses expire and whose lines break."""

from __future__ import annotations

import os
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from world import World

from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.failures.scene import Scene
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

JOB = CATALOGUE["cuda-oom"].job_name
VERDICT = "### 🔴 Out of GPU memory on rank 5 of 8"


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


def large(members: dict[str, str]) -> bytes:
    """Return an artifact with these members behind 11 MB of something that nobody needs to read."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoints/model.bin", os.urandom(11_000_000), zipfile.ZIP_STORED)
        for name, text in members.items():
            archive.writestr(name, text)
        archive.writestr("coverage/end.bin", os.urandom(200_000))  # so that the logs do not come with the directory
    return buffer.getvalue()


async def fail(world: World) -> Pull:
    github = world.github
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    remains = CATALOGUE["cuda-oom"].build(Scene(JOB, at=github.state.clock(), sha=run.head_sha))
    artifact = large(dict(remains.artifact or {}))
    await github.finish_job(run, JOB, "failure", log=remains.log, artifact=artifact, step=remains.step)
    await world.idle()
    return pull


def parts(github: SimulatedGitHub) -> list[str]:
    """Return the parts of the artifact that were asked for; "whole" for all of it."""
    return [seen.headers.get("range", "whole") for seen in github.asked("GET", r"^/blob/.*\.zip$")]


async def test_of_a_large_artifact_only_the_logs_travel(world: World, github: SimulatedGitHub) -> None:
    pull = await fail(world)
    assert VERDICT in world.answers(pull)[0]
    first, *others = parts(github)
    assert first == "bytes=-131072"
    assert others
    assert "whole" not in others
    kept = [path for path in Path(world.data_dir, "files").rglob("*.zip") if path.is_file()]  # noqa: ASYNC240
    assert [path.stat().st_blocks * 512 < 2_000_000 for path in kept] == [True]


async def test_an_expired_address_and_a_broken_line_cost_nothing_but_a_try(
    world: World, github: SimulatedGitHub
) -> None:
    github.fail_next("GET", r"^/blob/.*\.zip$", status=403)
    github.fail_next("GET", r"^/blob/.*\.zip$", "truncate", times=2)
    pull = await fail(world)
    assert VERDICT in world.answers(pull)[0]
    assert "whole" not in parts(github)
