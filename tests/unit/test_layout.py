from __future__ import annotations

import pytest

from analyzers.reading.layout import Kind, RunKey, place


@pytest.mark.parametrize(
    ("name", "kind", "run", "rank"),
    [
        ("1/none_ab12cd34/attempt_0/3/stderr.log", Kind.RANK, RunKey("", 1, "none_ab12cd34", 0), 3),
        ("logs/2/none_x/attempt_3/0/stdout.log", Kind.RANK, RunKey("", 2, "none_x", 3), 0),
        ("gpt3_tp2/1/attempt_0/7/stderr.log", Kind.RANK, RunKey("gpt3_tp2", 1, "", 0), 7),
        ("gpt3_tp2/node-1/1/attempt_0/7/stderr.log", Kind.RANK, RunKey("gpt3_tp2", 1, "node-1", 0, "node-1"), 7),
        ("node_rank_0/1/none_x/attempt_0/7/stderr.log", Kind.RANK, RunKey("", 1, "none_x", 0, "node_rank_0"), 7),
        ("gpt3_tp2/1/log_task-1.out", Kind.WOVEN, RunKey("gpt3_tp2", 1, "", 0), None),
        ("1/launcher.log", Kind.LAUNCHER, RunKey("", 1, "", 0), None),
        ("nccl_debug.log", Kind.NCCL, RunKey("", 0, "", 0), None),
    ],
)
def test_places(name: str, kind: Kind, run: RunKey, rank: int | None) -> None:
    found = place(name)
    assert found is not None
    assert (found.kind, found.run, found.local_rank) == (kind, run, rank)


@pytest.mark.parametrize(
    "name",
    [
        "1/tensorboard/events.out.tfevents.1.log",
        "golden_values_dev.json",
        ".run_ci_barriers/x/node_0",
        ".hidden.log",
        "",
    ],
)
def test_what_is_no_log(name: str) -> None:
    assert place(name) is None
