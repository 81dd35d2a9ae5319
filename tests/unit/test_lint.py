"""Of five checks in one script the one that ran last has failed; its first complaint is the answer."""

from __future__ import annotations

import pytest
from job_logs import failed, line_of, read, step

from analyzers.model import Category
from analyzers.parsers.job_report import Ending

BLACK = "+ black --check --diff --verbose megatron/core/utils.py"
ISORT = "+ isort --check megatron/core/utils.py"
PYLINT = "+ pylint megatron/core/utils.py"
RUFF = "+ ruff check --no-fix megatron/core/utils.py"
MYPY = "+ mypy --explicit-package-bases --follow-imports=skip megatron/core/utils.py"
MYPY_ERROR = "megatron/core/utils.py:22: error: Incompatible types in assignment  [assignment]"
RATED = "Your code has been rated at 9.12/10 (previous run: 10.00/10, -0.88)"


def autoformat(*output: str) -> list[str]:
    return step("bash tools/autoformat.sh", *output)


@pytest.mark.parametrize(
    ("output", "complaint", "location", "code"),
    [
        ([BLACK, "would reformat a.py", "would reformat b.py", "Oh no! 💥"], "would reformat a.py", None, 1),
        (
            [BLACK, "error: cannot format megatron/core/utils.py: Cannot parse: 7:4: f(:"],
            "error: cannot format megatron/core/utils.py",
            "megatron/core/utils.py:7",
            123,
        ),
        (
            [
                BLACK,
                "All done!",
                ISORT,
                "ERROR: /opt/megatron-lm/a.py Imports are incorrectly sorted and/or formatted.",
            ],
            "ERROR: /opt/megatron-lm/a.py Imports",
            None,
            1,
        ),
        (
            [
                ISORT,
                PYLINT,
                "************* Module megatron.core.utils",
                "megatron/core/utils.py:12:0: C0116: Missing function or method docstring (missing-function-docstring)",
                "megatron/core/utils.py:40:4: W0612: Unused variable 'y' (unused-variable)",
                "",
                RATED,
            ],
            "C0116: Missing function or method docstring",
            "megatron/core/utils.py:12",
            20,
        ),
        (
            [
                RUFF,
                "megatron/core/utils.py:13:36: S506 Probable use of unsafe loader `Loader` with `yaml.load`.",
                "   |",
                "Found 1 error.",
            ],
            "megatron/core/utils.py:13:36: S506 Probable",
            "megatron/core/utils.py:13",
            1,
        ),
        (
            [RUFF, "F401 [*] `os` imported but unused", " --> megatron/core/utils.py:1:8", "  |", "Found 1 error."],
            "F401 [*] `os` imported but unused",
            "megatron/core/utils.py:1",
            1,
        ),
        (
            [RUFF, "All checks passed!", MYPY, MYPY_ERROR, "Found 1 error in 1 file (checked 1 source file)"],
            MYPY_ERROR,
            "megatron/core/utils.py:22",
            1,
        ),
        (
            [
                "+ python tools/check_copyright.py megatron/core/a.py megatron/core/b.py",
                "✓ Header present: megatron/core/a.py",
                "✗ Header missing: megatron/core/b.py",
                "",
                "1 file(s) missing copyright header.",
            ],
            "Header missing: megatron/core/b.py",
            None,
            1,
        ),
        (
            [
                "Found non-finite values in tests/functional_tests/test_cases/gpt/a/golden_values_dev_dgx_h100.json:",
                "  $['lm loss']['values']['3'] = 'nan'",
            ],
            "Found non-finite values in tests/functional_tests",
            None,
            1,
        ),
    ],
)
def test_the_first_complaint_of_the_failed_check(
    output: list[str], complaint: str, location: str | None, code: int
) -> None:
    job = autoformat(*output, failed(code))
    report = read(job)
    finding = report.findings[0]
    assert (report.ending, report.exit_code) == (Ending.FAILED, code)
    assert finding.category is Category.LINT
    assert complaint in finding.error.message
    assert finding.error.type is None
    assert finding.location == location
    assert finding.evidence.file == "job.log"
    assert abs(finding.evidence.line - line_of(complaint, job)) <= 1


def test_complaints_before_the_check_that_failed_are_not_the_reason() -> None:
    """pylint may talk and yet succeed (its score is high enough); ruff then ends the script."""
    report = read(
        autoformat(
            PYLINT,
            "megatron/core/utils.py:1:0: R0801: Similar lines in 2 files (duplicate-code)",
            RATED,
            RUFF,
            "megatron/core/utils.py:3:8: F401 [*] `os` imported but unused",
            failed(),
        )
    )
    assert "F401" in report.findings[0].error.message


def test_mypy_is_forgiven_and_the_job_passes() -> None:
    report = read(autoformat(RUFF, "All checks passed!", MYPY, MYPY_ERROR, "+ true"))
    assert (report.passed, report.findings, report.fallback) == (True, (), None)


def test_forgiven_complaints_are_no_reason_for_a_later_failure() -> None:
    report = read(autoformat(MYPY, MYPY_ERROR, "+ true"), step("python3 tools/other.py", "boom", failed(3)))
    assert report.findings == ()
    assert report.fallback is not None
    assert "exit code 3" in report.fallback.error.message
    assert report.failed_step == "python3 tools/other.py"


def test_the_text_of_the_script_is_no_output() -> None:
    """GitHub prints a step's script inside the group of its header, coloured; a real complaint may look the same."""
    report = read(step("echo 'would reformat everything'\nwould reformat nothing", "fine"))
    assert report.passed


def test_a_stale_lock_in_the_lint_job_is_no_lint() -> None:
    report = read(
        step(
            "uv sync --locked --only-group linting",
            "Resolved 5 packages in 466ms",
            "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.",
            "",
            "hint: To update the lockfile, run `uv lock`.",
            failed(1),
        )
    )
    assert report.findings[0].category is Category.DEPENDENCY
    assert report.findings[0].retryable is False


def test_all_files_and_codes_are_told() -> None:
    many = [
        f"megatron/core/utils.py:{n}:0: C0116: Missing docstring (missing-function-docstring)" for n in range(1, 31)
    ]
    found = read(autoformat(PYLINT, *many, failed(20))).findings[0]
    assert found.evidence.excerpt[:2] == tuple(many[:2])
    assert found.evidence.excerpt[-1] == "... and 10 more"
    new = autoformat(RUFF, "F401 [*] `os` imported but unused", " --> megatron/core/a.py:3:8", failed(1))
    assert read(new).findings[0].evidence.excerpt == ("F401 [*] `os` imported but unused --> megatron/core/a.py:3:8",)
