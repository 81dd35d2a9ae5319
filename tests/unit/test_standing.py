"""The comment tells how each job stands now: what it did last counts, and heading and counts agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import HEAD, MODELS, OTHER, make_diagnosis, make_finding, make_job, make_pull, make_run

from analyzers.model import Category, Error
from config.repo import default_config
from handlers.context import Job, JobFinding
from handlers.render.report import render_report
from handlers.reporting import Facts, assemble

CONFIG = default_config()
GATES = ("Nemo_CICD_Test", "Coverage (unit-test)")
PORT = make_diagnosis(fingerprint="1" * 16, category=Category.PORT_COLLISION, retryable=True)
LINT = make_diagnosis(
    fingerprint="2" * 16,
    category=Category.LINT,
    culprit_ranks=(),
    victim_ranks=(),
    location=None,
    failed_tests=(),
    error=Error(None, "would reformat megatron/core/a.py"),
)


def lint_fails(attempt: int) -> tuple[Job, JobFinding]:
    job = make_job("linting", id=attempt * 1000, attempt=attempt)
    return job, make_finding(job, diagnosis=LINT)


def body_of(facts: Facts) -> str:
    return render_report(assemble(facts, CONFIG))


def third_attempt(*jobs: Job, past: tuple[Job, ...], done: bool = True) -> str:
    """The tests of the models failed in attempt 1; now lint fails in attempt 3."""
    lint, lint_finding = lint_fails(3)
    run = make_run(attempt=3, status="completed" if done else "in_progress", conclusion="failure" if done else None)
    facts = Facts(
        make_pull(),
        [run],
        {7: [lint, *jobs]},
        [make_finding(diagnosis=PORT), lint_finding],
        past={7: [*past, lint, *jobs]},
    )
    return body_of(facts)


FAILED_ONCE = make_job(id=101, attempt=1)
PASSED_SINCE = make_job(conclusion="success", id=201, attempt=2)


@pytest.mark.parametrize("skipped", [(make_job(conclusion="skipped", id=301, attempt=3),), ()])
def test_a_job_that_passed_since_stays_passed_where_it_is_skipped_or_absent(skipped: tuple[Job, ...]) -> None:
    body = third_attempt(*skipped, past=(FAILED_ONCE, PASSED_SINCE))
    assert body.startswith("### 🔴 Lint failed\n")
    assert "attempt 3: 1 failed" in body
    assert body.index("<summary>What had failed and passes now") < body.index("A port was taken")


def test_a_job_that_did_not_run_since_is_no_failed_job_of_this_attempt() -> None:
    body = third_attempt(make_job(conclusion="skipped", id=301, attempt=3), past=(FAILED_ONCE,))
    assert body.startswith("### 🔴 Lint failed\n")
    assert body.index("<summary>What had failed and was not run again") < body.index("A port was taken")


def test_a_job_that_the_attempt_has_not_come_to_is_running_again() -> None:
    body = third_attempt(past=(FAILED_ONCE,), done=False)
    assert body.startswith("### 🔴 2 root causes in 2 failed jobs\n")
    assert "(running again, attempt 3)" in body


def test_nothing_is_green_for_a_pass_of_before_while_a_new_attempt_runs() -> None:
    run = make_run(attempt=3, status="in_progress", conclusion=None)
    facts = Facts(make_pull(), [run], {7: []}, [make_finding()], past={7: [FAILED_ONCE, PASSED_SINCE]})
    assert body_of(facts).startswith("### 🟡 No failed job so far\n")


def test_a_run_that_was_cancelled_before_the_job_says_nothing_new_of_it() -> None:
    run = make_run(attempt=2, conclusion="cancelled")
    again = make_job(conclusion="cancelled", id=201, attempt=2)
    facts = Facts(make_pull(), [run], {7: [again]}, [make_finding()], past={7: [FAILED_ONCE, again]})
    assert body_of(facts).startswith("### ⚪ Not run again: 1 failed job of before, and attempt 2 did not come to it\n")


def test_the_last_failure_of_a_job_is_told_whatever_the_order_of_findings() -> None:
    again = make_job(id=201, attempt=2)
    findings = [make_finding(again, diagnosis=PORT), make_finding()]
    assert body_of(Facts(make_pull(), [make_run(attempt=2)], {7: [again]}, findings)).startswith(
        "### 🔴 A port was taken"
    )


def test_an_infrastructure_failure_that_passes_is_not_called_intermittent() -> None:
    run = make_run(attempt=2, conclusion="success")
    body = body_of(Facts(make_pull(), [run], {7: [PASSED_SINCE]}, [make_finding(diagnosis=PORT)]))
    assert body.startswith("### 🟢 The failed job passes in attempt 2\n")
    assert "intermittent" not in body


@pytest.mark.parametrize(
    ("gates", "told"),
    [
        (GATES, "attempt 1: 1 failed (+2 jobs that only follow it), 1 passed, 2 skipped"),
        (GATES[:1], "attempt 1: 1 failed (+1 job that only follows it), 1 passed, 2 skipped"),
        ((), "attempt 1: 1 failed, 1 passed, 2 skipped"),
    ],
)
def test_the_counts_add_up_to_githubs_own(gates: tuple[str, ...], told: str) -> None:
    jobs = [
        make_job(),
        make_job("linting", "success", id=2),
        *(make_job(name, id=10 + place) for place, name in enumerate(gates)),
        *(make_job(f"gpt/small_{place} - latest", "skipped", id=20 + place) for place in range(2)),
    ]
    assert told in body_of(Facts(make_pull(), [make_run()], {7: jobs}, [make_finding()]))


def test_the_older_commit_is_named_until_there_is_a_result() -> None:
    waiting = Facts(make_pull(), [make_run(status="in_progress", conclusion=None)], {}, [], outdated_sha=OTHER)
    assert f"`{OTHER[:7]}`, an older commit" in body_of(waiting)
    green = replace(waiting, runs=[make_run(conclusion="success")])
    assert body_of(green).startswith("### 🟢 All jobs pass\n")
    assert OTHER[:7] not in body_of(green)
    red = Facts(make_pull(), [make_run()], {7: [make_job()]}, [make_finding()], outdated_sha=OTHER)
    assert OTHER[:7] not in body_of(red)


def test_from_the_third_cause_on_they_are_folded_under_an_index() -> None:
    jobs = [make_job(f"tests/unit_tests/{number}/*.py - latest", id=number) for number in range(4)]
    findings = [
        make_finding(job, diagnosis=make_diagnosis(fingerprint=f"{number:016x}")) for number, job in enumerate(jobs)
    ]
    body = body_of(Facts(make_pull(), [make_run()], {7: jobs}, findings))
    top, rest = body.split("\n\n1. Out of GPU memory on rank 5 of 8: [`tests/unit_tests/0/*.py - latest`]")
    assert top.startswith("### 🔴 4 root causes in 4 failed jobs\n")
    assert "\n4. Out of GPU memory" in rest
    assert rest.index("#### 2. Out of") < rest.index("<details><summary><b>3. Out of GPU memory on rank 5 of 8</b>")
    assert body.count("<details>") == body.count("</details>")


def test_lint_says_which_file_and_whether_the_change_has_it() -> None:
    job, finding = lint_fails(1)
    facts = Facts(make_pull(), [make_run()], {7: [job]}, [finding], changed_files=frozenset({"megatron/core/a.py"}))
    body = body_of(facts)
    assert "- **Where:** `megatron/core/a.py`, a file that this pull request changes" in body
    assert "- **This change:** points to this change" in body
    elsewhere = body_of(replace(facts, changed_files=frozenset({"README.md"})))
    assert "- **Where:** `megatron/core/a.py`, not changed by this pull request" in elsewhere


@pytest.mark.parametrize(
    ("category", "message", "place"),
    [
        (
            Category.LINT,
            "ERROR: /home/runner/_work/M-LM/M-LM/megatron/a.py Imports are incorrectly sorted",
            "megatron/a.py",
        ),
        (Category.LINT, "error: cannot format megatron/core/mtp.py: Cannot parse: 88:12: x", "megatron/core/mtp.py"),
        (Category.LINT, "ERROR: /opt/elsewhere/a.py Imports are incorrectly sorted", None),
        (Category.DEPENDENCY, "error: The lockfile at `uv.lock` needs to be updated, but `--locked`", "uv.lock"),
        (Category.DEPENDENCY, "ImportError: x.py", None),
        (Category.CRASH_PYTHON, "would reformat megatron/core/a.py", None),
    ],
)
def test_the_file_is_read_from_the_words_of_a_formatter_or_uv(
    category: Category, message: str, place: str | None
) -> None:
    found = replace(LINT, category=category, error=Error(None, message))
    body = body_of(Facts(make_pull(), [make_run()], {7: [make_job()]}, [make_finding(diagnosis=found)]))
    assert (f"**Where:** `{place}`" in body) if place else ("**Where:**" not in body)


def test_without_a_run_the_comment_says_what_is_missing() -> None:
    facts = Facts(make_pull(), [], {}, [], outdated_sha=OTHER, no_run="There is no CI run.")
    assert body_of(facts).startswith(
        f"### ⚪ CI has not run for this commit\n\nCommit `{HEAD[:7]}`\n\nThere is no CI run."
    )
    assert MODELS not in body_of(facts)
