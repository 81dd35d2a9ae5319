"""Several starts in one artifact: which of them decides."""

from __future__ import annotations

import pytest

from analyzers import analyze
from analyzers.model import Category, Confidence, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import bundle, pytest_log, raised, ranks

DONE = "[after training is done] datetime: 2026-08-03 {clock} \n"
PORT = "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5')"
BAD = raised("ValueError: bad", "megatron/core/b.py:9 g")


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return RuleSet.from_documents(rule_documents(), prove=False)


def start(folder: str, stderr: str = "", clock: str | None = None, *, passed: bool = False) -> dict[str, str]:
    stamp = f"[after dataloaders are built] datetime: 2026-08-03 {clock} \n" if clock else ""
    done = DONE.format(clock=clock) if passed and clock else pytest_log({"tests/a.py::t": "PASSED"}) if passed else ""
    said = {0: stderr + (f"[W803 {clock}.1 x.cpp:1] terminate called\n" if clock and stderr else "")}
    return ranks(said, stdout={0: stamp + done}, of=1, folder=folder)


def verdict(rules: RuleSet, *starts: dict[str, str]) -> Diagnosis:
    return analyze(bundle({name: text for files in starts for name, text in files.items()}), rules)


def test_the_highest_attempt_of_one_launcher_decides(rules: RuleSet) -> None:
    first = start("1/none_a/attempt_0", raised(PORT, "megatron/core/a.py:7 f"))
    found = verdict(rules, first, start("1/none_a/attempt_1", BAD))
    assert (found.category, [attempt.category for attempt in found.attempts]) == (
        Category.CRASH_PYTHON,
        [Category.PORT_COLLISION, Category.CRASH_PYTHON],
    )


def test_a_later_repeat_that_passed_makes_the_job_pass(rules: RuleSet) -> None:
    found = verdict(rules, start("1/attempt_0", BAD), start("2/attempt_0", passed=True))
    assert found.passed
    assert [attempt.category for attempt in found.attempts] == [Category.CRASH_PYTHON, None]


def test_starts_in_random_folders_are_ordered_by_their_times(rules: RuleSet) -> None:
    late = start("1/none_a/attempt_0", passed=True, clock="03:00:34")
    early = start("1/none_b/attempt_0", BAD, clock="02:00:00")
    assert verdict(rules, late, early).passed


def test_without_times_a_failure_stands_with_little_confidence(rules: RuleSet) -> None:
    found = verdict(rules, start("1/none_a/attempt_0", BAD), start("1/none_b/attempt_0", passed=True))
    assert (found.category, found.confidence) == (Category.CRASH_PYTHON, Confidence.LOW)


def test_one_test_of_several_failed(rules: RuleSet) -> None:
    found = verdict(rules, start("gpt_a/1/attempt_0", passed=True), start("gpt_b/1/attempt_0", BAD))
    assert found.evidence is not None
    assert (found.category, found.evidence.file.split("/")[0]) == (Category.CRASH_PYTHON, "gpt_b")
