"""What an analysis costs grows with the ranks and the folders as they do: nothing is compared pair by pair."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from analyzers.analyze import analyze
from analyzers.model import Diagnosis
from bot.diagnose import packaged_rules
from tests import logs
from tests.flight_dumps import Faults, pickled, pipeline_job, run

FEW, TIMES = 32, 4
#: Of four times as much; comparing all pairs would make sixteen of it.
MOST = 4.6

Files = Mapping[str, str | bytes]
OUT_OF_MEMORY = logs.raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", "a.py:10 f")


def out_of_memory(ranks: int) -> Files:
    return logs.ranks({rank: logs.peer_died(rank) for rank in range(1, ranks)} | {0: OUT_OF_MEMORY}, of=ranks)


def hang(ranks: int) -> Files:
    return logs.ranks({rank: logs.watchdog(rank, second=10 + rank / 1000) for rank in range(1, ranks)}, of=ranks)


def two_collectives(ranks: int) -> Files:
    return logs.ranks({rank: logs.watchdog(rank, seq=7 + rank % 2) for rank in range(ranks)}, of=ranks)


def with_debug_logs(ranks: int) -> Files:
    names = {rank: f"{logs.FOLDER}/nccl_debug.host{rank // 8}.{rank}.log" for rank in range(ranks)}
    said = {name: f"host:{rank}:{rank} [{rank % 8}] NCCL WARN no route\n" for rank, name in names.items()}
    return {**hang(ranks), **said}


def woven(ranks: int) -> Files:
    told = {rank: OUT_OF_MEMORY if rank == 0 else logs.peer_died(rank) for rank in range(ranks)}
    lines = [f"{rank}: {line}\n" for rank, text in told.items() for line in text.splitlines()]
    return {"slurm-1.out": "".join(lines)}


def folders(ranks: int, *, name: Callable[[int], str]) -> Files:
    """A folder per rank, with a test that fails in the last of them."""
    files: dict[str, str] = {}
    for number in range(ranks):
        failed = logs.failures(logs.failure("test_a", "AssertionError: no", "tests/t.py:3 test_a"))
        results = {f"tests/t{number}.py::test_a": "FAILED" if number == ranks - 1 else "PASSED"}
        text = logs.pytest_log(results, sections=failed if number == ranks - 1 else "")
        files |= logs.ranks({}, stdout={0: text}, of=1, folder=name(number))
    return files


def dumps(ranks: int) -> Files:
    documents = run(pipeline_job(stages=2, tensor=2, data=ranks // 4), Faults(stopped={5: 7}))
    return {f"dumps/_dump_{rank}": pickled(document) for rank, document in documents.items()}


def calls(files: Files) -> tuple[int, Diagnosis]:
    """Analyse, and count the calls of Python's and of C's functions: the same on each machine."""
    made = 0

    def count(*_: Any) -> None:
        nonlocal made
        made += 1

    bundle = logs.bundle(files)
    sys.setprofile(count)
    try:
        found = analyze(bundle, packaged_rules())
    finally:
        sys.setprofile(None)
    return made, found


@pytest.mark.parametrize(
    "job",
    [
        out_of_memory,
        hang,
        two_collectives,
        with_debug_logs,
        woven,
        dumps,
        partial(folders, name=lambda number: f"1/none_{number:08x}/attempt_0"),
        partial(folders, name=lambda number: f"1/none_ab12cd34/attempt_{number}"),
        partial(folders, name=lambda number: f"node{number}/1/none_ab12cd34/attempt_0"),
    ],
    ids=["oom", "hang", "two collectives", "nccl logs", "woven", "dumps", "tests", "attempts", "nodes"],
)
def test_four_times_the_ranks_take_four_times_the_calls(job: Callable[[int], Files]) -> None:
    analyze(logs.bundle(job(8)), packaged_rules())  # compiles what is compiled once
    few, first = calls(job(FEW))
    many, second = calls(job(TIMES * FEW))
    assert not first.passed
    assert first.category is second.category
    assert many / few < MOST
