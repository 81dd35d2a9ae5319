"""Crashes that are not the rank's own: of a child that a test started, and of ranks that another one left alone."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import SITE, bundle, failure, failures, pytest_log, raised, ranks, torchrun_summary

TEST = "tests/unit_tests/a/test_a.py::test_b"
STACK = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f2a9b7fe640 (most recent call first):\n"
FORKED = (
    '  File "/opt/megatron-lm/tests/unit_tests/a/test_a.py", line 8 in crash\n'
    '  File "/usr/lib/python3.12/multiprocessing/process.py", line 314 in _bootstrap\n'
    f'  File "{SITE}/_pytest/python.py", line 187 in pytest_pyfunc_call\n'
    '  File "<frozen runpy>", line 198 in _run_module_as_main\n'
)
STARTED = '  File "/opt/megatron-lm/tests/unit_tests/a/crash.py", line 8 in <module>\n'
AT_EXIT = f'  File "{SITE}/torch/distributed/c10d.py", line 8 in close\n'
IN_PYTEST = (
    f'  File "{SITE}/_pytest/terminal.py", line 900 in pytest_unconfigure\n'
    '  File "<frozen runpy>", line 198 in _run_module_as_main\n'
)


def verdict(files: dict[str, str], launcher: str = "") -> Diagnosis:
    told = {"1/launcher.log": launcher} if launcher else {}
    return analyze(bundle(files | told), RuleSet.from_documents(rule_documents(), prove=False))


def all_green_but(stack: str) -> dict[str, str]:
    return ranks({1: STACK + stack}, stdout=dict.fromkeys(range(4), pytest_log({TEST: "PASSED"})))


@pytest.mark.parametrize("stack", [FORKED, STARTED], ids=["forked", "started"])
def test_a_child_may_crash_on_purpose(stack: str) -> None:
    assert verdict(all_green_but(stack)).passed


@pytest.mark.parametrize("stack", ["  <no Python frame>\n", AT_EXIT, IN_PYTEST], ids=["no frame", "exit", "pytest"])
def test_a_crash_at_the_end_of_the_process_is_its_own(stack: str) -> None:
    found = verdict(all_green_but(stack))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_NATIVE, (1,))


def test_the_launcher_knows_whose_crash_it_was() -> None:
    found = verdict(all_green_but(FORKED), torchrun_summary([(1, -11)]))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_NATIVE, (1,))


def test_an_abort_for_a_lost_peer_accuses_nobody_whatever_it_says() -> None:
    bad = pytest_log(
        {TEST: "FAILED"}, sections=failures(failure("test_b", "ValueError: q", "tests/unit_tests/a/test_a.py:3 f"))
    )
    aborted = (
        "terminate called after throwing an instance of '{}'\n  what():  something new\nFatal Python error: Aborted\n"
    )
    running = dict.fromkeys((0, 1, 3), pytest_log({TEST: ""}, closing=None))
    for exception, culprits in (("c10::DistBackendError", (2,)), ("std::bad_alloc", (0, 1, 3))):
        stderr = dict.fromkeys((0, 1, 3), aborted.format(exception))
        found = verdict(ranks(stderr, stdout=running | {2: bad}))
        assert found.culprit_ranks == culprits


@pytest.mark.parametrize(
    "word",
    [
        "terminate called without an active exception\nFatal Python error: Aborted\n",
        raised("torch.distributed.DistNetworkError: something new", "megatron/training/training.py:9 train"),
        raised("torch.distributed.DistStoreError: something new", "megatron/training/training.py:9 train"),
        raised(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 26 got signal: 15",
            "megatron/training/training.py:9 train",
        ),
        raised(
            "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp"
            ":77, remote process exited or there was a network error, NCCL version 2.27.7",
            "megatron/training/training.py:9 train",
        ),
        (
            "[E702 01:10:11.1 ProcessGroupNCCL.cpp:2068] Process group watchdog thread terminated with exception: "
            "NCCL error: remote process exited or there was a network error\n"
        ),
    ],
    ids=["thread", "socket", "store", "signal", "nccl", "watchdog"],
)
def test_many_that_end_with_one_do_not_outvote_it(word: str) -> None:
    own = raised("KeyError: 'x'", "megatron/core/a.py:7 f")
    found = verdict(ranks({0: word, 1: word, 2: own, 3: word}))
    assert (found.culprit_ranks, found.location) == ((2,), "megatron/core/a.py:7")
    killed = verdict(ranks({0: word, 1: word, 3: word}), torchrun_summary([(2, -9)]))
    assert (killed.category, killed.culprit_ranks) == (Category.HOST_OOM, (2,))
