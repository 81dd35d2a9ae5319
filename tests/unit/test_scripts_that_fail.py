"""Exceptions that cross processes, scripts that cannot be parsed, subtests; and what ends ranks without a word."""

from __future__ import annotations

import pytest
from job_logs import rules
from logs import bundle, peer_died, pytest_log, raised, ranks, torchrun_summary

from analyzers.analyze import analyze
from analyzers.model import Category, Confidence, Diagnosis

REMOTE = (
    'multiprocessing.pool.RemoteTraceback: \n"""\n'
    + raised(
        "KeyError: 'text'", "/usr/lib/python3.12/multiprocessing/pool.py:125 worker", "tools/preprocess.py:44 encode"
    )
    + '"""\n\nThe above exception was the direct cause of the following exception:\n\n'
    + raised("KeyError: 'text'", "tools/preprocess.py:90 main", "/usr/lib/python3.12/multiprocessing/pool.py:774 get")
)
UNPARSED = (
    '  File "/opt/megatron-lm/megatron/core/a.py", line 12\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
)
PEERS = {rank: peer_died(rank) for rank in range(4)}


def answer(files: dict[str, str]) -> Diagnosis:
    return analyze(bundle(files), rules())


def test_an_exception_of_a_worker_process_stands_where_the_worker_raised_it() -> None:
    found = answer(ranks({0: REMOTE}, of=1))
    assert (found.category, found.location) == (Category.CRASH_PYTHON, "tools/preprocess.py:44")
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("KeyError", "'text'")


def test_a_script_that_cannot_be_parsed_has_no_traceback() -> None:
    found = answer(ranks(dict.fromkeys(range(4), UNPARSED)))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (0, 1, 2, 3))
    assert (found.location, found.evidence and found.evidence.line) == ("megatron/core/a.py:12", 4)


def test_a_place_alone_is_no_syntax_error() -> None:
    text = '  File "/opt/megatron-lm/a.py", line 12\n' + "more\n" * 9 + "SyntaxError: quoted somewhere\n"
    assert answer(ranks({0: text}, of=1)).category is Category.UNKNOWN


def test_a_failed_subtest_fails_its_test() -> None:
    log = pytest_log({"tests/unit_tests/t.py::T::test_a": "PASSED"}, closing=None) + (
        "=================================== FAILURES ===================================\n"
        "________________________________ T.test_a (i=1) ________________________________\n"
        "tests/unit_tests/t.py:4: in test_a\n    self.assertEqual(1, 2)\nE   AssertionError: 1 != 2\n"
        "=========================== short test summary info ============================\n"
        "SUBFAILED(i=1) tests/unit_tests/t.py::T::test_a - AssertionError: 1 != 2\n"
        "========================= 1 failed, 1 passed in 1.15s ==========================\n"
    )
    found = answer(ranks({}, stdout={0: log}, of=1))
    assert found.failed_tests == ("tests/unit_tests/t.py::T::test_a",)
    assert (found.category, found.location) == (Category.TEST_ASSERTION, "tests/unit_tests/t.py:4")


def test_the_rank_that_never_came_to_the_store_is_the_culprit() -> None:
    late = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined."
    waiting = {rank: raised(late, "megatron/training/initialize.py:7 f") for rank in (0, 1, 3)}
    found = answer(ranks(waiting))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.COLLECTIVE_TIMEOUT, (2,), (0, 1, 3))
    own = raised("ValueError: bad argument", "megatron/training/arguments.py:7 f")
    found = answer(ranks({**waiting, 2: own}))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (2,))


def test_a_folder_for_each_node_is_one_start() -> None:
    """The path knows the rank on its node, the prefix the global one."""
    own = raised("ValueError: bad", "megatron/core/a.py:7 f", rank=6)
    files = {}
    for node in range(2):
        for local in range(4):
            text = own if (node, local) == (1, 2) else peer_died(4 * node + local)
            files[f"node-{node}/1/none_ab12cd3{node}/attempt_0/{local}/stderr.log"] = text
    found = answer(files)
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (6,))
    assert found.victim_ranks == (0, 1, 2, 3, 4, 5, 7)
    flat = answer(
        {name.replace("/none_ab12cd30", "").replace("/none_ab12cd31", ""): text for name, text in files.items()}
    )
    assert (flat.culprit_ranks, flat.victim_ranks) == (found.culprit_ranks, found.victim_ranks)


def test_a_launcher_that_was_told_to_stop_was_cancelled() -> None:
    launcher = raised(
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 26365 got signal: 15",
        "/opt/venv/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/api.py:85 _terminate",
    )
    found = answer(ranks({}, stdout=dict.fromkeys(range(4), "iteration\n")) | {"1/launcher.log": launcher})
    assert (found.category, found.culprit_ranks, found.confidence) == (Category.CANCELLED, (), Confidence.LOW)
    own = answer(ranks({2: raised("ValueError: x", "megatron/core/a.py:7 f")}) | {"1/launcher.log": launcher})
    assert (own.category, own.culprit_ranks) == (Category.CRASH_PYTHON, (2,))


def test_one_rank_that_a_barrier_names() -> None:
    told = "RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 10000 ms"
    found = answer(ranks({0: raised(told, "megatron/core/a.py:7 f", rank=0)}))
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, (2,))


@pytest.mark.parametrize(
    "words",
    [
        "python3: /src/ucx/core.c:212: ucp_init: Assertion `context != NULL' failed.",
        "free(): double free detected in tcache 2",
        "*** buffer overflow detected ***: terminated",
    ],
)
def test_the_c_librarys_last_words_are_the_evidence_of_an_abort(words: str) -> None:
    summary = torchrun_summary([(2, -6), (0, 1), (1, 1), (3, 1)])
    found = answer(ranks({**PEERS, 2: words + "\n"}) | {"1/launcher.log": summary})
    assert (found.category, found.culprit_ranks) == (Category.CRASH_NATIVE, (2,))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("SIGABRT", words)
    assert found.evidence is not None
    assert found.evidence.file.endswith("/2/stderr.log")


def test_nccl_without_gpu_memory_ran_out_of_it() -> None:
    told = (
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:77, unhandled cuda error, NCCL version 2.27.7\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 4194304 bytes"
    )
    found = answer(ranks({**PEERS, 2: raised(told, "megatron/core/a.py:7 f", rank=2)}))
    assert (found.category, found.culprit_ranks) == (Category.CUDA_OOM, (2,))


def ended_by_watchdog(rank: int) -> str:
    return (
        f"[rank{rank}]:[F702 01:10:11 ProcessGroupNCCL.cpp:1557] [PG ID 0 Rank {rank}] Terminating the process "
        "after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n"
    )


def test_a_hang_of_which_nothing_else_is_known_accuses_nobody_of_a_crash() -> None:
    summary = {"1/launcher.log": torchrun_summary([(rank, -6) for rank in range(4)])}
    found = answer(ranks({rank: ended_by_watchdog(rank) for rank in range(4)}) | summary)
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, ())
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("xid", "category"),
    [("94, Contained: SM (0x1)", Category.GPU_HARDWARE), ("43, pid=1, name=python, Ch 00000010", Category.NETWORK)],
)
def test_a_driver_that_names_no_process_still_explains_lost_peers(xid: str, category: Category) -> None:
    launcher = f"[12345.1] NVRM: Xid (PCI:0000:5d:00): {xid}\n" + torchrun_summary([(2, 1), (0, 1), (1, 1), (3, 1)])
    found = answer(ranks(PEERS) | {"1/launcher.log": launcher})
    assert (found.category, found.culprit_ranks) == (category, ())
    assert found.confidence is not Confidence.HIGH


def test_a_coloured_closing_line_between_long_prints_is_seen() -> None:
    """What is logged on stderr after tests that passed accuses nobody."""
    gap = "printed by a test\n" * 80
    log = pytest_log({"tests/unit_tests/a/test_a.py::test_one": "PASSED"}, closing=None) + gap
    log += "\x1b[32m========= \x1b[32m\x1b[1m1 passed\x1b[0m\x1b[32m in 1.23s\x1b[0m\x1b[32m =========\x1b[0m\n"
    late = raised("RuntimeError: cannot schedule new futures after interpreter shutdown", "megatron/core/a.py:7 f")
    found = answer(ranks({0: late}, stdout={0: f"{log}{gap}NCCL WARN x\n{gap}"}, of=1))
    assert found.passed
