"""How a job ended, at which step, and what the runner, the launcher and the upload said on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_logs import failed, job_log, line_of, read, rules, step
from logs import source

from analyzers.model import Category
from analyzers.parsers.job_log import read_job_log
from analyzers.parsers.job_report import Ending

T = "task-1-0/0 "
RUN = step('echo "::group::Logs"', "##[group]Logs", T + "training ...")
BANNER = "\x1b[1;32m║   ✅  PASSED                                              ║\x1b[0m"
UPLOADED = (
    "Artifact logs-case-172-5f11.zip successfully finalized. Artifact ID 41104",
    "Artifact logs-case-172-5f11 has been successfully uploaded! Final size is 556 bytes. Artifact ID is 41104",
)
EXCERPT = (
    "logs_report=logs-case-172-5f11",
    "📋 ── log excerpt ──────────",
    "   assets_dir/logs/1/none_xl568l4p/attempt_0/0/stdout.log — last 40 lines",
    "─" * 72,
    "E   AssertionError: this line is a copy of another log",
    "##[error]neither is this one an annotation of ours",
    "─" * 72,
)


@pytest.mark.parametrize(
    ("line", "ending", "category", "retryable"),
    [
        (
            "The self-hosted runner: gpu-1 lost communication with the server. Verify the machine is running.",
            Ending.RUNNER_LOST,
            Category.RUNNER_LOST,
            True,
        ),
        (
            "The runner has received a shutdown signal. This can happen when the runner service is stopped.",
            Ending.RUNNER_LOST,
            Category.RUNNER_LOST,
            True,
        ),
        (
            "The job running on runner gpu-1 has exceeded the maximum execution time of 60 minutes.",
            Ending.TIMED_OUT,
            Category.JOB_TIMEOUT,
            None,
        ),
        (
            "The action 'Run main script' has timed out after 60 minutes.",
            Ending.TIMED_OUT,
            Category.JOB_TIMEOUT,
            None,
        ),
        (
            "Canceling since a higher priority waiting request for 'CI-refs/heads/pull-request/1' exists",
            Ending.CANCELLED,
            Category.CANCELLED,
            False,
        ),
        (
            'The strategy configuration was canceled because "tests.b_latest" failed',
            Ending.CANCELLED,
            Category.CANCELLED,
            None,
        ),
        ("The operation was canceled.", Ending.CANCELLED, Category.CANCELLED, None),
    ],
)
def test_the_runners_own_reason(line: str, ending: Ending, category: Category, retryable: bool | None) -> None:
    job = [*RUN, f"##[error]{line}"]
    after = step("logs_report=logs", BANNER)  # the result step runs all the same, and knows nothing
    report = read(job, after)
    found = report.findings[0]
    assert (report.ending, found.category, found.retryable) == (ending, category, retryable)
    assert found.error.message == line
    assert found.evidence.line == line_of(line, job, after)
    assert not report.passed


def test_a_reason_beats_the_bare_cancel() -> None:
    for order in (1, -1):
        lines = ["##[error]The operation was canceled.", "##[error]The run was canceled by @octocat."][::order]
        assert read([*RUN, *lines]).findings[0].error.message == "The run was canceled by @octocat."


def test_a_job_that_had_failed_before_was_not_cancelled() -> None:
    report = read([*RUN, "Did not finish.", failed()], ["##[error]The operation was canceled."])
    assert report.ending is Ending.FAILED
    assert report.findings == ()
    assert report.fallback is not None
    assert report.fallback.category is Category.UNKNOWN
    assert "exit code 1" in report.fallback.error.message


def test_a_script_that_the_runner_killed_did_not_fail_itself() -> None:
    limit = "The job running on runner gpu-1 has exceeded the maximum execution time of 60 minutes."
    assert read([*RUN, failed(143), f"##[error]{limit}"]).ending is Ending.TIMED_OUT


@pytest.mark.parametrize(
    "last", [[BANNER, "##[notice]✅ tests/unit_tests/x.py — PASSED"], ["fine"], ["##[warning]No files were found"]]
)
def test_a_green_job_passed(last: list[str]) -> None:
    scary = [T + "Traceback (most recent call last):", T + "ValueError: expected by the test", "0 errors, 0 failed"]
    report = read([*RUN, *scary, "exit_code=0"], step("logs_report=logs", *last))
    assert (report.ending, report.findings, report.fallback) == (Ending.PASSED, (), None)


def test_a_failed_upload_is_not_the_cause() -> None:
    upload = step("actions/upload-artifact@v6", "##[error]Failed to CreateArtifact: Unable to make request: ECONNRESET")
    result = step("logs_report=logs", BANNER, "##[notice]✅ tests/unit_tests/x.py — PASSED")
    assert read([*RUN, "exit_code=0"], result, upload).passed
    report = read([*RUN, "Did not finish.", failed(3)], upload)
    assert (report.ending, report.exit_code) == (Ending.FAILED, 3)
    assert report.fallback is not None
    assert "exit code 3" in report.fallback.error.message


def test_a_log_that_stops_says_nothing() -> None:
    report = read_job_log(
        source("2026-12-01T10:00:00.0000000Z Current runner version: '2.331.0'\n", "job.log"), rules()
    )
    assert report.ending is Ending.UNKNOWN


def test_an_artifact_and_the_newest_run_are_named_and_the_excerpt_is_no_output() -> None:
    report = read([*RUN, failed()], step("logs_report=logs-x-$(cat uuid)", *EXCERPT, failed()), [*UPLOADED])
    assert (report.artifact_name, report.artifact_id) == ("logs-case-172-5f11", 41104)
    assert report.run_folder == "1/none_xl568l4p"
    assert report.findings == ()
    assert report.failed_step == 'echo "::group::Logs"'


def test_launches_are_told_apart_with_their_exits() -> None:
    def launch(code: int) -> list[str]:
        return [
            "[16:00:01] Launching job task-1 for experiment mcore-ci-test   experiment.py:800",
            T + "E1201 17:34:32.169000 1 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: "
            f"{code}) local_rank: 6 (pid: 18005) of binary: python",
            T + "Root Cause (first observed failure):",
            T + "[0]:",
            T + "  time      : 2026-12-01_17:34:31",
            T + "  host      : node-a",
            T + "  rank      : 6 (local_rank: 6)",
            T + f"  exitcode  : {code} (pid: 18005)",
            "           ERROR    Job failed with status: FAILED launch_nemo_run_workload.py:301",
            "           WARNING  Detected flaky failure, attempt restart.",
        ]

    job = [*RUN, *launch(1), *launch(-9), failed()]
    report = read(job)
    assert [(at.number, at.failed, [(e.rank, e.exit_code, e.host) for e in at.exits]) for at in report.launches] == [
        (1, True, [(6, 1, "node-a")]),
        (2, True, [(6, -9, "node-a")]),
    ]
    assert report.launches[1].exits[0].line == line_of("exitcode  : -9", job)


def test_a_launcher_ended_from_outside_is_cancelled_unless_something_is_known() -> None:
    signal = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 26365 got signal: 15"
    job = [*RUN, T + "Traceback (most recent call last):", T + signal, failed()]
    found = read(job).findings[0]
    assert (found.category, found.error.message) == (Category.CANCELLED, "Process 26365 got signal: 15")
    assert found.evidence.line == line_of(signal, job)


def test_carriage_returns_and_endless_lines_keep_the_count() -> None:
    lines = [*RUN, "layer: 1%\rlayer: 50%\rlayer: done", "x" * 3_000_000, "Did not finish.", failed()]
    report = read(lines)
    assert report.fallback is not None
    assert report.fallback.evidence.line == line_of("exit code 1", lines)


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0), st.integers(min_value=1, max_value=4000), st.booleans())
def test_where_the_chunks_end_changes_nothing_and_no_cut_upsets(cut: int, chunk_bytes: int, bom: bool) -> None:
    whole = b"".join(job_log([*RUN, "é\r\rb", failed()], step("logs", *EXCERPT), [*UPLOADED], bom=bom).chunks())
    data = whole[: cut % (len(whole) + 1)]
    assert read_job_log(source(data, "job.log", chunk_bytes=chunk_bytes), rules()) == read_job_log(
        source(data, "job.log"), rules()
    )


def test_a_script_that_breaks_is_told_unless_it_went_on() -> None:
    trace = ["Traceback (most recent call last):", '  File "/opt/megatron-lm/tests/tool.py", line 3, in <module>']
    error = "KeyError: 'lm loss'"
    job = [*RUN, *(T + text for text in [*trace, error]), failed()]
    found = read(job).findings[0]
    assert (found.category, found.error.type) == (Category.CRASH_PYTHON, "KeyError")
    assert found.error.message == "'lm loss'", "what the runner says next is none of it"
    assert found.evidence.line == line_of(error, job)
    went_on = [*RUN, *(T + text for text in [*trace, error, *["step done"] * 100]), failed()]
    assert read(went_on).findings == ()


def test_a_finding_has_the_time_of_its_line() -> None:
    found = read([*RUN, failed()]).fallback
    assert found is not None
    assert found.at is not None
    assert (found.at.isoformat()[:17], found.at.tzname()) == ("2026-12-01T10:00:", "UTC")
