"""Several folders on each of several nodes: which of them ran together."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import bundle, failure, failures, pytest_log, raised, ranks

FIRST, SECOND = "tests/unit_tests/a/test_a.py::test_first", "tests/unit_tests/a/test_b.py::test_second"
#: The names of the folders are random: in their order, the parts of the two starts are crossed.
RUNS = {"node_0": ("none_aaaaaaaa", "none_bbbbbbbb"), "node_1": ("none_zzzzzzzz", "none_cccccccc")}


def device(rank: int, clock: str) -> str:
    return (
        f"[rank{rank}]:[W1007 {clock}.000839120 ProcessGroupNCCL.cpp:5023] [PG ID 0 PG GUID 0 Rank {rank}]  using GPU"
    )


def failed(test: str) -> str:
    name = test.rpartition("::")[2]
    return pytest_log(
        {test: "FAILED"},
        sections=failures(failure(name, "AssertionError: assert 1 == 2", f"{test.partition('::')[0]}:9 f")),
    )


def verdict(files: dict[str, str]) -> Diagnosis:
    return analyze(bundle(files), RuleSet.from_documents(rule_documents(), prove=False))


@pytest.mark.parametrize("told", [True, False], ids=["the lines name ranks", "no line does"])
def test_folders_that_ran_the_same_tests_ran_together(*, told: bool) -> None:
    """The first run of pytest is green on both nodes, in the second one the second node fails."""
    files: dict[str, str] = {}
    for place, (node, runs) in enumerate(RUNS.items()):
        for run, test, clock in zip(runs, (FIRST, SECOND), ("21:01:10", "21:09:10"), strict=True):
            bad = test == SECOND and place == 1
            stdout = {rank: failed(test) if bad and rank == 0 else pytest_log({test: "PASSED"}) for rank in range(2)}
            stderr = {rank: device(rank + 2 * place, clock) if told else "" for rank in range(2)}
            files |= ranks(stderr, stdout=stdout, of=2, folder=f"{node}/1/{run}/attempt_0")
    found = verdict(files)
    assert (found.culprit_ranks, found.victim_ranks) == ((2,), (0, 1, 3))
    assert found.failed_tests == (SECOND,)
    assert len(found.attempts) == 2


def test_a_start_and_the_one_after_it_are_told_apart_by_their_clocks() -> None:
    """The launcher starts the same script again on both nodes; only the first start fails."""
    files: dict[str, str] = {}
    own = raised("ValueError: bad shape", "megatron/core/a.py:7 f", rank=3)
    for place, (node, runs) in enumerate(RUNS.items()):
        for start, clock in enumerate(("21:01:10", "21:31:10")):
            stderr = {rank: device(rank + 2 * place, clock) + "\n" for rank in range(2)}
            if (place, start) == (1, 0):
                stderr[1] += own
            stdout = dict.fromkeys(range(2), "[after training is done] datetime: 2026-10-07\n" if start else "")
            files |= ranks(stderr, stdout=stdout, of=2, folder=f"{node}/1/{runs[start]}/attempt_0")
    found = verdict(files)
    assert found.passed
    assert [attempt.ranks for attempt in found.attempts] == [(3,), ()]


def test_where_a_node_made_more_folders_than_the_other_nothing_is_joined_by_guess() -> None:
    files = ranks({}, of=2, folder="node_0/1/none_aaaaaaaa/attempt_0")
    files |= ranks(
        {1: raised("ValueError: x", "megatron/core/a.py:7 f")}, of=2, folder="node_1/1/none_bbbbbbbb/attempt_0"
    )
    files |= ranks({}, of=2, folder="node_1/1/none_cccccccc/attempt_0")
    found = verdict(files)
    assert (found.culprit_ranks, found.victim_ranks) == ((1,), (0,))


def test_nccls_own_log_is_of_the_start_that_says_nothing_else() -> None:
    """The first start raised and was begun anew; of the last one only `nccl_debug.log` beside both has a word."""
    refused = (
        "node-1:71:88 [1] misc/ibvwrap.cc:269 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out\n"
    )
    debug = f"node-1:70:87 [0] NCCL INFO Bootstrap: Using eth0\n[2026-07-02 01:40:11] {refused}"
    first = ranks({2: raised("KeyError: 'a'", "megatron/core/a.py:7 f", rank=2)}, folder="logs/1/none_zz/attempt_0")
    silent = ranks({}, folder="logs/1/none_aa/attempt_0")
    found = verdict(first | silent | {"nccl_debug.log": debug})
    assert (found.category, found.culprit_ranks) == (Category.NETWORK, (1,))
    assert [attempt.category for attempt in found.attempts] == [Category.CRASH_PYTHON, Category.NETWORK]
    alone = verdict(first | {"nccl_debug.log": debug})
    assert alone.culprit_ranks == (2,)
