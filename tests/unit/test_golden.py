"""The checks of a functional test's own results: what failed, in which test, at which line of the job's log."""

from __future__ import annotations

from job_logs import failed, line_of, read, step

from analyzers.model import Category, Finding

T = "task-1-0/0 "
FILE = "tests/functional_tests/python_test_utils/test_pretraining_regular_pipeline.py"
NODE = f"{FILE}::test_regular_pipeline"


def pytest_run(error: list[str], *, result: str = "FAILED", log: tuple[str, ...] = ()) -> list[str]:
    return [
        T + "============================= test session starts ==============================",
        T + "rootdir: /opt/megatron-lm",
        T + "collected 1 item",
        T,
        T + f"{NODE} ",
        T + "\x1b[1m-------------------------------- live log call ---------------------------------\x1b[0m",
        *(T + line for line in log),
        T + f"\x1b[31m{result}\x1b[0m",
        T,
        T + "=================================== FAILURES ===================================",
        T + "____________________________ test_regular_pipeline _____________________________",
        *(T + line for line in error),
        T + "=========================== short test summary info ============================",
        T + f"FAILED {FILE}::\x1b[1mtest_regular_pipeline\x1b[0m - AssertionError: ...",
        T + "============================== 1 failed in 1.06s ===============================",
    ]


LONG = [
    f"\x1b[1m\x1b[31m{FILE}\x1b[0m:59: ",
    "_ _ _ _ _ _ _ _ _ _ _ _",
    '>       assert all_test_passed, f"The following metrics failed: {names}"',
    "\x1b[1m\x1b[31mE       AssertionError: The following metrics failed: lm loss, num-zeros\x1b[0m",
    "",
    "tests/functional_tests/python_test_utils/common.py:365: AssertionError",
]


def read_golden(*output: str) -> tuple[Finding, list[str]]:
    job = step('echo "::group::Logs"', "##[group]Logs", *output, failed())
    return read(job).findings[0], job


def test_metrics_that_differ() -> None:
    found, job = read_golden(T + "[default0]: iteration 50/50 | lm loss: 9.9E+00", *pytest_run(LONG))
    assert found.category is Category.GOLDEN_MISMATCH
    assert found.error.type == "AssertionError"
    assert found.error.message.startswith("The following metrics failed: lm loss, num-zeros")
    assert found.location == "tests/functional_tests/python_test_utils/common.py:365"
    assert found.tests == (NODE,)
    assert found.retryable is False
    assert found.rank is None
    assert found.evidence.line == line_of("AssertionError: The following metrics failed: lm", job)


def test_what_was_compared_is_shown() -> None:
    said = (
        "INFO     common:common.py:344 Actual values: 8.42",
        "ERROR    common:common.py:366 Exact comparison of lm loss: FAILED",
        "INFO     common:common.py:366 APPROXIMATE test for metric lm loss: PASSED",
    )
    found = read_golden(*pytest_run(LONG, log=said))[0]
    assert found.evidence.excerpt[-2:] == said[1:]


def test_generated_text_that_differs() -> None:
    error = [
        f"{FILE}:175: in test_inference_pipeline",
        "E   AssertionError: Logprobs differ at index 3: -0.52 vs -0.53",
    ]
    assert read_golden(*pytest_run(error))[0].category is Category.GOLDEN_MISMATCH


def test_shapes_that_differ_were_never_compared() -> None:
    error = [
        f"{FILE}:198: in compare",
        "E   AssertionError: Tensor shape mismatch for optimizer.state: (4, 8) vs (8, 4)",
    ]
    run = [
        line.replace("test_pretraining_regular_pipeline", "test_optimizer_grads_match") for line in pytest_run(error)
    ]
    assert read_golden(*run)[0].category is Category.TEST_ASSERTION


def test_a_difference_that_the_check_does_not_put_into_words() -> None:
    error = [f"{FILE}:66: in check", "E   assert [-9.36, -4.79] == [-9.358, -4.786]"]
    assert read_golden(*pytest_run(error))[0].category is Category.GOLDEN_MISMATCH


def test_a_check_that_breaks_is_a_test_error() -> None:
    error = [f"{FILE}:30: in test_regular_pipeline", "E   ZeroDivisionError: division by zero"]
    found = read_golden(*pytest_run(error))[0]
    assert (found.category, found.error.type) == (Category.TEST_ERROR, "ZeroDivisionError")


def test_only_the_last_launch_counts() -> None:
    launch = "[16:00:01] Launching job task-1 for experiment mcore-ci-test   experiment.py:800"
    first = [line.replace("lm loss, num-zeros", "iteration-time") for line in LONG]
    found, _ = read_golden(launch, *pytest_run(first), launch, *pytest_run(LONG))
    assert "lm loss" in found.error.message


def test_a_mismatch_in_a_green_job_is_told_by_nobody() -> None:
    launch = "[16:00:01] Launching job task-1 for experiment mcore-ci-test   experiment.py:800"
    report = read(step("logs", "##[group]Logs", launch, *pytest_run(LONG), launch, "fine"), ["##[notice]✅ x — PASSED"])
    assert (report.passed, report.findings) == (True, ())
