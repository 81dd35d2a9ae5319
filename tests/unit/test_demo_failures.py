"""The packaged failures are what they say: the analysis finds in each what was put there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.cli.main import main
from bot.demo.artifacts import pack
from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.failures.scene import Remains, Scene

AT = datetime(2026, 12, 1, 21, 0, tzinfo=UTC)
EIGHT = list(range(8))


def build(failure_id: str, *, bytes_per_rank: int = 0) -> Remains:
    failure = CATALOGUE[failure_id]
    return failure.build(Scene(failure.job_name, AT, "a" * 40, bytes_per_rank=bytes_per_rank))


FOUND = {
    "cuda-oom": ("cuda_oom", [5], "megatron/core/transformer/attention.py:412"),
    "hang": ("collective_timeout", [3], None),
    "assertion": ("test_assertion", [2], "tests/unit_tests/transformer/test_attention.py:88"),
    "segfault": ("crash_native", [6], "megatron/core/dist_checkpointing/strategies/filesystem_async.py:214"),
    "port": ("port_collision", [0], "megatron/core/inference/data_parallel_inference_coordinator.py:97"),
    "golden": ("golden_mismatch", [], "tests/functional_tests/python_test_utils/common.py:365"),
    "lint": ("lint", [], None),
    "lock": ("dependency", [], None),
}


@pytest.mark.parametrize("failure_id", sorted(CATALOGUE))
def test_each_failure_is_found(failure_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    category, culprits, location = FOUND[failure_id]
    remains = build(failure_id)
    (tmp_path / "job.log").write_bytes(remains.log)
    (tmp_path / "logs.zip").write_bytes(pack(remains.artifact or {}))
    words = ["analyze", "--job-log", str(tmp_path / "job.log"), "--job-name", CATALOGUE[failure_id].job_name]
    words += [str(tmp_path / "logs.zip")] if remains.artifact else []
    assert main([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["category"], found["culprit_ranks"]) == (category, culprits)
    assert location in {None, found["location"]}
    if culprits:
        assert sorted(found["culprit_ranks"] + found["victim_ranks"] + found["silent_ranks"]) == EIGHT


@pytest.mark.parametrize("failure_id", sorted(CATALOGUE))
def test_the_same_scene_makes_the_same_bytes(failure_id: str) -> None:
    assert build(failure_id) == build(failure_id)


def test_rank_logs_can_be_made_as_large_as_wanted() -> None:
    artifact = build("cuda-oom", bytes_per_rank=100_000).artifact
    assert artifact is not None
    sizes = [len(text) for name, text in artifact.items() if name.endswith("stdout.log")]
    assert len(sizes) == len(EIGHT)
    assert all(100_000 <= size < 200_000 for size in sizes)
