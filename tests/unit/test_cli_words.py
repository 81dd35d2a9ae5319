"""What `mlm analyze` says in words: once, in full, and nothing that the logs do not show."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from test_cli_analyze import mlm

from analyzers.model import (
    Attempt,
    Category,
    Confidence,
    Diagnosis,
    Error,
    Evidence,
    Read,
    Skipped,
)
from handlers.render.report import render_diagnosis
from handlers.render.text import render_text

MESSAGE = "The server socket has failed to listen on any local network address. port: 38400, message: in use"
FAILED = Diagnosis(
    passed=False,
    category=Category.PORT_COLLISION,
    retryable=True,
    confidence=Confidence.HIGH,
    summary=f"rank 0 found the port in use in tests/a.py:16: DistNetworkError: {MESSAGE}; 1 other rank died of it",
    culprit_ranks=(0,),
    victim_ranks=(1,),
    error=Error("torch.distributed.DistNetworkError", MESSAGE),
    location="tests/a.py:16",
    evidence=Evidence("1/none_a/attempt_0/0/stdout.log", 23, (f"torch.distributed.DistNetworkError: {MESSAGE}",)),
    read=Read(2, 24_000),
)
PASSED = replace(
    FAILED,
    passed=True,
    category=None,
    error=None,
    evidence=None,
    location=None,
    culprit_ranks=(),
    victim_ranks=(),
    summary="passes after a restart; start 1 failed: port_collision, rank 0",
    attempts=(Attempt(1, Category.PORT_COLLISION, True, "", (0,)), Attempt(2, None, False)),
)


def words(found: Diagnosis, width: int = 100) -> str:
    return render_text(found, color=False, width=width)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_error_stands_once() -> None:
    assert flat(words(FAILED)).count(MESSAGE) == 1
    assert "1/none_a/attempt_0/0/stdout.log:23" in words(FAILED)


@pytest.mark.parametrize("width", [72, 80, 200])
def test_what_is_too_long_is_wrapped_and_not_cut(width: int) -> None:
    line = "ERROR tests.functional_tests.python_test_utils.common:common.py:360 Exact comparison of lm loss: FAILED"
    found = replace(FAILED, evidence=Evidence("job.log", 7, ("another line", line)))
    text = words(found, width)
    assert line in flat(text)
    assert max(len(row) for row in text.splitlines()) <= width
    assert "…" not in text


def test_a_name_to_be_copied_stays_whole() -> None:
    test = f"tests/functional_tests/{'a_long_folder/' * 6}test_pipeline.py::test_it[compare_approximate]"
    assert test in words(replace(FAILED, failed_tests=(test,)), 80)


def test_nothing_found_takes_no_empty_lines() -> None:
    nothing = replace(FAILED, category=Category.UNKNOWN, error=None, evidence=None, failed_tests=(), location=None)
    nothing = replace(nothing, culprit_ranks=(), victim_ranks=(), commands=(), attempts=())
    assert "\n\n\n" not in words(nothing)
    assert "\n\n" in words(nothing)


def test_a_flake_is_told_of_a_job_that_passed() -> None:
    assert words(PASSED).splitlines()[:2] == ["PASSED  nothing failed in the end", PASSED.summary]
    assert "start 1 failed: `port_collision`, rank 0" in render_diagnosis(PASSED)
    calm = replace(PASSED, attempts=PASSED.attempts[1:], summary="nothing failed")
    assert words(calm).lower().count("nothing failed") == 1


def test_tests_of_one_artifact_are_no_starts() -> None:
    tests = [Attempt(number, None, False, f"gpt_{name}") for number, name in enumerate("abc", start=1)]
    tests[1] = replace(tests[1], category=Category.CRASH_PYTHON, ranks=(1,))
    text, markdown = (render(replace(FAILED, attempts=tuple(tests))) for render in (words, render_diagnosis))
    assert "tests   gpt_b failed, 2 others passed\n" in text
    assert "**Tests of this job:** `gpt_b` failed, 2 others passed" in markdown
    assert "start" not in text + markdown


def test_a_tenth_start_keeps_its_distance() -> None:
    starts = tuple(Attempt(number, Category.NUMERICS_NAN, False, "", (4,)) for number in range(1, 12))
    text = words(replace(FAILED, attempts=starts))
    assert "starts  start 1: numerics_nan, rank 4\n" in text
    assert "        and 4 more\n" in text


def test_a_hang_says_who_waited() -> None:
    found = replace(FAILED, category=Category.COLLECTIVE_TIMEOUT, culprit_ranks=(1,), victim_ranks=(0, 2, 3))
    for text in (words(found), render_diagnosis(found)):
        assert "1 held the others up; 0, 2–3 waited" in text


def test_what_was_not_read_is_told_before_the_answer() -> None:
    skipped = (Skipped("trunc.zip", "it was read from its beginning"), Skipped("b", "gone"))
    top = "\n".join(words(replace(FAILED, read=Read(1, 700, skipped))).splitlines()[:4])
    assert "! Not everything could be read: trunc.zip: it was read from its beginning, and 1 more" in top


def test_sizes_are_told_in_a_fitting_unit() -> None:
    told = {size: words(replace(FAILED, read=Read(1, size))).splitlines()[-1] for size in (700, 24_000, 3 << 20)}
    assert list(told.values()) == ["read 1 file, 700 bytes", "read 1 file, 23 KiB", "read 1 file, 3.0 MiB"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.zip", b"", "the file is empty"),
        ("empty.log", b"", "the file is empty"),
        ("hello.zip", b"hello\n", "is no zip or tar file"),
    ],
)
def test_a_file_that_cannot_be_a_log_is_refused(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for arguments in ([str(path)], ["--job-log", str(path)])[: 2 if name.endswith(".log") else 1]:
        done = mlm("analyze", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr


def test_an_empty_standard_input_is_refused() -> None:
    done = mlm("analyze", "-", input="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the input is empty" in done.stderr


def test_an_empty_job_log_does_not_hide_an_artifact(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("1/none_ab/attempt_0/0/stderr.log", "Traceback (most recent call last):\nValueError: x\n")
    (tmp_path / "a.zip").write_bytes(stream.getvalue())
    (tmp_path / "job.log").write_bytes(b"")
    done = mlm("analyze", str(tmp_path / "a.zip"), "--job-log", str(tmp_path / "job.log"))
    assert done.returncode == 0
    assert "ValueError: x" in done.stdout


def test_a_text_that_is_no_log_accuses_nobody(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A project\n\nIt explains failed jobs.\n")
    done = mlm("analyze", "--job-log", str(path))
    assert done.returncode == 0
    assert done.stdout.startswith("UNKNOWN  no failure recognised\n")
    assert "FAILED" not in done.stdout
    done = mlm("analyze", "--job-log", str(path), "--format", "markdown")
    assert done.stdout.startswith("### ⚪ No failure recognised")


def test_the_width_is_that_of_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "1" / "none_ab" / "attempt_0" / "0"
    path.mkdir(parents=True)
    error = "ValueError: " + " ".join(f"word{number}" for number in range(24))
    (path / "stderr.log").write_text(f"Traceback (most recent call last):\n{error}\n")
    wide, narrow = (
        mlm("analyze", str(tmp_path), env={**os.environ, "COLUMNS": width}).stdout for width in ("250", "60")
    )
    assert f"error   {error}\n" in wide
    assert error in flat(narrow)
    assert max(map(len, narrow.splitlines())) <= 60
