"""Killed in the middle of everything: nothing lost, nothing done twice. benchmarks/crash.py is the long version."""

from __future__ import annotations

from pathlib import Path

from crash import run_and_kill
from crash_steps import WRITES, kill_at_each_request


async def test_killed_at_random_moments(tmp_path: Path) -> None:
    outcome = await run_and_kill(tmp_path, stories=5, kills=3, life_s=(0.2, 1.5), empty=False)
    assert outcome.verdict.clean, outcome.verdict
    assert outcome.kills == 3
    assert outcome.carried.twice > 20


async def test_killed_at_a_write_that_is_carried_out_all_the_same(tmp_path: Path) -> None:
    steps = await kill_at_each_request(tmp_path, "rerun", carried=True, methods=WRITES, most=3)
    assert steps.clean, list(zip(steps.where, steps.verdicts, strict=False))
    assert steps.where
