"""The whole service on PostgreSQL: a failed job becomes one comment, also when a replica helps."""

from __future__ import annotations

from pathlib import Path

from postgres import postgres_server
from world import World

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"


async def test_a_failed_job_becomes_one_comment(tmp_path: Path) -> None:
    with postgres_server() as url:
        world = World(tmp_path, database_url=url)
        world.github.add_repo("NVIDIA/Megatron-LM")
        async with world:
            pull = await world.github.open_pull()
            run = await world.github.start_run(pull)
            failed = await world.github.finish_job(run, JOB, "failure", log=FAILURE)
            await world.idle()
            (answer,) = world.answers(pull)
            assert "flash_attn" in answer
            assert await world.deliver(failed) == 202
            await world.idle()
            assert world.answers(pull) == [answer]
            assert (await world.get("/readyz"))[0] == 200
