"""Several starts in one artifact: which of them decides."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
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


COMPARED = """task-1/0 =================================== FAILURES ===================================
task-1/0 ____________________________ test_regular_pipeline _____________________________
task-1/0 tests/functional_tests/python_test_utils/common.py:365: in pipeline
task-1/0     assert all_test_passed
task-1/0 E   AssertionError: The following metrics failed: lm loss
task-1/0 =========================== short test summary info ============================
task-1/0 FAILED tests/functional_tests/python_test_utils/test_a.py::test_regular_pipeline - AssertionError: ...
##[error]Process completed with exit code 1.
"""


@pytest.mark.parametrize("finished", [True, False], ids=["the last start says so", "it is silent"])
@pytest.mark.parametrize(
    ("job_log", "category"),
    [
        (COMPARED, Category.GOLDEN_MISMATCH),
        ("##[error]The run was canceled by @octocat.\n", Category.CANCELLED),
        ("##[error]The job has exceeded the maximum execution time of 1h0m0s\n", Category.JOB_TIMEOUT),
    ],
)
def test_what_the_job_log_says_of_the_last_start_outranks_an_earlier_failure(
    rules: RuleSet, job_log: str, category: Category, *, finished: bool
) -> None:
    files = start("1/none_a/attempt_0", raised(PORT, "megatron/core/a.py:7 f"))
    files |= start("1/none_a/attempt_1", clock="03:00:34" if finished else None, passed=finished)
    found = analyze(bundle(files, job_log=job_log), rules)
    assert (found.category, found.culprit_ranks) == (category, ())
    assert found.attempts[0].category is Category.PORT_COLLISION


def test_where_the_job_log_gives_no_reason_the_earlier_failure_is_told(rules: RuleSet) -> None:
    files = start("1/none_a/attempt_0", BAD) | start("1/none_a/attempt_1", clock="03:00:34", passed=True)
    found = analyze(bundle(files, job_log="##[error]Process completed with exit code 1.\n"), rules)
    assert found.category is Category.CRASH_PYTHON


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


def ran(folder: str, result: str, test: str = "tests/a.py::t") -> dict[str, str]:
    return ranks({}, stdout={0: pytest_log({test: result})}, of=1, folder=folder)


def test_a_failed_test_that_passes_in_another_start_was_started_again(rules: RuleSet) -> None:
    """The launcher begins again only after a failure, so the failed start is the earlier one, whatever its name."""
    green, other = ran("1/none_a/attempt_0", "PASSED"), ran("1/none_b/attempt_0", "PASSED", "tests/b.py::u")
    found = verdict(rules, green, other, ran("1/none_c/attempt_0", "FAILED"))
    assert (found.passed, found.confidence) == (True, Confidence.MEDIUM)
    assert found.summary == "passes after a restart; start 1 failed: test_error, rank 0"
    assert [attempt.category for attempt in found.attempts] == [Category.TEST_ERROR, None, None]


def test_another_test_that_passed_mends_nothing(rules: RuleSet) -> None:
    green = ran("1/none_a/attempt_0", "PASSED", "tests/b.py::u")
    found = verdict(rules, green, ran("1/none_c/attempt_0", "FAILED"))
    assert (found.passed, found.confidence) == (False, Confidence.LOW)
    assert "nothing in the logs tells which of the two came last" in found.summary


def test_tests_that_are_repeated_on_purpose_order_nothing(rules: RuleSet) -> None:
    green = [ran(f"1/none_{name}/attempt_0", "PASSED") for name in "ab"]
    assert not verdict(rules, *green, ran("1/none_c/attempt_0", "FAILED")).passed


def test_the_last_attempt_of_each_folder_counts_where_folders_have_no_order(rules: RuleSet) -> None:
    first = [ran("1/none_a/attempt_0", "FAILED"), ran("1/none_a/attempt_1", "PASSED")]
    found = verdict(rules, *first, ran("1/none_b/attempt_0", "PASSED", "tests/b.py::u"))
    assert found.passed
    assert found.summary.startswith("passes after a restart; start 1 failed")


def test_the_tests_of_one_artifact_are_told_apart(rules: RuleSet) -> None:
    passed = [start(f"gpt_{name}/1/attempt_0", passed=True) for name in "ace"]
    found = verdict(rules, *passed, start("gpt_b/1/attempt_0", BAD))
    assert [(one.test, one.category) for one in found.attempts] == [
        ("gpt_a", None),
        ("gpt_b", Category.CRASH_PYTHON),
        ("gpt_c", None),
        ("gpt_e", None),
    ]
