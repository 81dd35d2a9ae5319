from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis
from analyzers.parsers.pytest_ids import read_progress, section_name, split_id
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import ROOT, bundle, failure, failures, pytest_log, raised, ranks

A = "tests/unit_tests/a/test_a.py::TestA::test_one"
B = "tests/unit_tests/a/test_a.py::TestA::test_two[a b-x[1]]"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return RuleSet.from_documents(rule_documents(), prove=False)


def verdict(rules: RuleSet, stdout: str, stderr: str = "") -> Diagnosis:
    return analyze(bundle(ranks({0: stderr}, stdout={0: stdout}, of=1)), rules)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"{A} PASSED", (A, "PASSED")),
        (f"{A} FAILED                    [ 10%]", (A, "FAILED")),
        (f"{B} ERROR", (B, "ERROR")),
        (f"{A} XFAIL (error: rampup below one)", (A, "XFAIL")),
        (f"{A} Test data already available at /opt/data", (A, None)),
        (f"{A} ERROR:megatron.core:learning rate is negative", (A, None)),
        (f"[gw1] [ 50%] FAILED {B} ", (B, "FAILED")),
        ("tests/unit_tests/a.py:12: in f", None),
        ("DEBUG tests/x.py::y", None),
        ("a/test_b.py::test_c SKIPPED (no GPU (of eight))                [ 10%]", ("a/test_b.py::test_c", "SKIPPED")),
        ("a/test_b.py::test_c XFAIL (why not)", ("a/test_b.py::test_c", "XFAIL")),
        ("a/test_b.py::test_c SKIPPED (no GPU) and more", ("a/test_b.py::test_c", None)),
    ],
)
def test_progress_lines(line: str, found: tuple[str, str | None] | None) -> None:
    assert read_progress(line) == found


def test_ids_with_blanks_and_brackets() -> None:
    assert split_id(f"{B} - AssertionError") == (B, " - AssertionError")
    assert section_name(B) == "TestA.test_two[a b-x[1]]"


def test_the_first_failure_in_the_order_of_the_run_counts(rules: RuleSet) -> None:
    sections = "==================================== ERRORS ====================================\n"
    sections += failure(
        "ERROR at setup of TestA.test_two[a b-x[1]]", "RuntimeError: second", "tests/unit_tests/a/c.py:3 setup"
    )
    sections += failures(failure("TestA.test_one", "ValueError: first", "tests/unit_tests/a/test_a.py:9 test_one"))
    found = verdict(rules, pytest_log({A: "FAILED", B: "ERROR"}, sections=sections))
    assert found.error is not None
    assert (found.error.message, found.failed_tests) == ("first", (A, B))


def test_a_result_on_a_line_of_its_own_belongs_to_the_test_before(rules: RuleSet) -> None:
    text = pytest_log({A: "printed something"}, closing=None) + "more\nFAILED\n"
    assert verdict(rules, text).failed_tests == (A,)


def test_a_logged_exception_in_a_passing_test_is_noise(rules: RuleSet) -> None:
    logged = raised("ValueError: expected", "megatron/core/a.py:1 f")
    text = pytest_log({A: ""}, closing=None) + logged + "PASSED\n=== 1 passed in 0.1s ===\n"
    assert verdict(rules, text).passed


@pytest.mark.parametrize(
    ("error", "when", "category"),
    [
        ("assert 1 == 2", "", Category.TEST_ASSERTION),
        ("Failed: DID NOT RAISE <class 'ValueError'>", "", Category.TEST_ASSERTION),
        ("Failed: Timeout (>60.0s) from pytest-timeout.", "", Category.TEST_ERROR),
        ("ValueError: x", "", Category.TEST_ERROR),
        ("AssertionError: in a fixture", "ERROR at teardown of ", Category.TEST_ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.", "", Category.CUDA_OOM),
    ],
)
def test_kinds_of_failed_tests(rules: RuleSet, error: str, when: str, category: Category) -> None:
    report = failures(failure(f"{when}TestA.test_one", error, "tests/unit_tests/a/test_a.py:9 test_one"))
    result = "ERROR" if when else "FAILED"
    assert verdict(rules, pytest_log({A: result}, sections=report)).category is category


def test_a_conftest_that_cannot_be_imported_fails_the_collection(rules: RuleSet) -> None:
    stderr = (
        "ImportError while loading conftest '/opt/megatron-lm/tests/unit_tests/conftest.py'.\n"
        "tests/unit_tests/conftest.py:10: in <module>\n    from megatron.core import x\n"
        "megatron/core/x.py:3: in <module>\n    import y\nE   ModuleNotFoundError: No module named 'y'\n"
    )
    found = verdict(rules, "", stderr)
    assert (found.category, found.location, found.failed_tests) == (Category.COLLECTION, "megatron/core/x.py:3", ())
    assert found.evidence is not None
    assert found.evidence.line == 6


def test_a_syntax_error_is_found_where_it_stands(rules: RuleSet) -> None:
    report = (
        "==================================== ERRORS ====================================\n"
        "______________ ERROR collecting tests/unit_tests/test_d.py ______________\n"
        "/x/_pytest/python.py:5: in importtestmodule\n    mod = f()\n"
        f'E     File "{ROOT}/tests/unit_tests/test_d.py", line 4\n'
        "E       def test_x(:\nE                  ^\nE   SyntaxError: invalid syntax\n"
    )
    found = verdict(
        rules, pytest_log({}, sections=report, closing="!!!!!! Interrupted: 1 error during collection !!!!!!\n")
    )
    assert (found.category, found.location) == (Category.COLLECTION, "tests/unit_tests/test_d.py:4")
    assert found.error is not None
    assert found.error.type == "SyntaxError"


def test_a_dataloader_workers_exception_is_told_by_its_own_line(rules: RuleSet) -> None:
    error = (
        "ValueError: Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n"
        '  File "/opt/megatron-lm/megatron/core/datasets/rows.py", line 24, in pad\n    raise ValueError()\n'
        "ValueError: too long"
    )
    report = failures(failure("TestA.test_one", error, "tests/unit_tests/a/test_a.py:9 test_one"))
    found = verdict(rules, pytest_log({A: "FAILED"}, sections=report))
    assert found.error is not None
    assert (found.error.message, found.location) == ("too long", "megatron/core/datasets/rows.py:24")


def test_of_a_long_message_the_end_is_told_too(rules: RuleSet) -> None:
    code = "\n".join(f"line {n}" for n in range(40))
    told = failure(
        "TestA.test_one", f"CompilationError: at 4:34:\n{code}\n\nwhy: no such name", "megatron/core/a.py:3 run"
    )
    lines = verdict(rules, pytest_log({A: "FAILED"}, sections=failures(told))).error
    assert lines is not None
    assert lines.message.split("\n")[:2] == ["at 4:34:", "line 0"]
    assert lines.message.split("\n")[-2:] == ["line 39", "why: no such name"]


def test_a_test_that_never_ended_is_the_failed_one_of_a_crash(rules: RuleSet) -> None:
    crash = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
        '  File "/opt/megatron-lm/megatron/core/k.py", line 17 in copy\n'
    )
    found = verdict(rules, pytest_log({A: "PASSED", B: ""}, closing=None), crash)
    assert (found.category, found.failed_tests, found.location) == (
        Category.CRASH_NATIVE,
        (B,),
        "megatron/core/k.py:17",
    )


def test_an_unknown_option_is_told(rules: RuleSet) -> None:
    stderr = "ERROR: usage: __main__.py [options]\n__main__.py: error: unrecognized arguments: --experimental\n"
    assert verdict(rules, "", stderr).category is Category.COLLECTION


def test_only_a_summary_line_is_still_an_answer(rules: RuleSet) -> None:
    summary = f"================== short test summary info ==================\nFAILED {A} - ValueError: x\n"
    found = verdict(rules, pytest_log({A: "FAILED"}, sections=summary))
    assert found.error is not None
    assert (found.error.type, found.failed_tests) == ("ValueError", (A,))


def test_expected_failures_pass(rules: RuleSet) -> None:
    assert verdict(rules, pytest_log({A: "XFAIL (known)", B: "PASSED"})).passed
