"""The logs of a job cannot be read in time: the comment says so, and so do a figure and the log."""

from __future__ import annotations

from pathlib import Path

import structlog
from world import World

JOB = "tests/unit_tests/models/**/*.py - latest"
FIGURE = 'mlm_analysis_failures_total{reason="time"}'


async def test_logs_that_take_too_long_are_counted_and_told(tmp_path: Path) -> None:
    world = World(tmp_path, analysis_limit_s=1e-6)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        assert f"{FIGURE} 0.0" in (await world.get("/metrics"))[1], "shown from the start"
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        with structlog.testing.capture_logs() as said:
            await world.github.finish_job(
                run, JOB, "failure", log="ModuleNotFoundError: No module named 'flash_attn'\n"
            )
            await world.idle()
        (answer,) = world.answers(pull)
        assert "could not be analysed within" in answer
        assert f"{FIGURE} 1.0" in (await world.get("/metrics"))[1]
        assert [line["reason"] for line in said if line["event"] == "analysis.failed"] == ["time"]
