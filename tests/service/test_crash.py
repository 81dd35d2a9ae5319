"""Killed in the middle of everything: nothing lost, nothing done twice. benchmarks/crash.py is the long version."""

from __future__ import annotations

from pathlib import Path

from crash import run_and_kill
from crash_points import AFTER, BEFORE
from crash_steps import Step, kill_at_steps


async def test_killed_at_random_moments(tmp_path: Path) -> None:
    outcome = await run_and_kill(tmp_path, stories=5, kills=3, life_s=(0.2, 1.5), empty=False)
    assert outcome.verdict.clean, outcome.verdict
    assert outcome.kills == 3
    assert outcome.carried.twice > 20


async def test_killed_once_at_steps_of_a_rerun(tmp_path: Path) -> None:
    """Where a repeated effect would hurt most: the note of the re-run, the call itself, the step's result."""
    wanted = [
        Step(AFTER, "INSERT mlm_memory rerun", "rerun"),
        Step(AFTER, "POST /repos/#/#/actions/jobs/#/rerun", "rerun"),
        Step(BEFORE, "UPDATE workflow_status command + INSERT operation_outputs perform command", "rerun"),
        Step(AFTER, "POST /repos/#/#/issues/#/comments", "rerun"),
    ]
    swept = await kill_at_steps(tmp_path, wanted, to_the_end=False)
    assert swept.killed == wanted
    assert swept.verdict.clean, swept.verdict
