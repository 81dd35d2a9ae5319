"""A repository that is not on the operator's list gets nothing, whatever it sends; a renamed one counts by its id."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog
from world import World

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n"


@pytest.mark.parametrize(
    ("listed", "served"),
    [("", True), ("nvidia/Megatron-LM", True), ("NVIDIA/*", True), ("{id}", True), ("other/*, NVIDIA/NeMo", False)],
)
async def test_only_listed_repositories_are_served(tmp_path: Path, listed: str, served: bool) -> None:
    world = World(tmp_path)
    repo = world.github.add_repo("NVIDIA/Megatron-LM")
    world.repositories = listed.format(id=repo.id)
    with structlog.testing.capture_logs() as said:
        async with world:
            pull = await world.github.open_pull()
            run = await world.github.start_run(pull)
            for name in (JOB, JOB.replace("models", "data")):
                await world.github.finish_job(run, name, "failure", log=FAILURE)
            await world.idle()
            assert len(world.answers(pull)) == served
            assert bool(world.github.asked("POST", "access_tokens")) == served
    assert len([line for line in said if line["event"] == "delivery.not_ours"]) == (not served)
