"""The one comment: verdict first, one block per cause, true to how the jobs stand now, never too long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import HEAD, MODELS, OTHER, make_diagnosis, make_finding, make_job, make_pull, make_run
from markdown_it import MarkdownIt

from analyzers.model import Category, Confidence, Error, Evidence, Read, Skipped
from config.repo import default_config
from handlers.context import Job
from handlers.render.report import MAX_LENGTH, length, render_diagnosis, render_report
from handlers.render.text import render_text
from handlers.reporting import Facts, assemble

CONFIG = default_config()
DATA = "tests/unit_tests/data/**/*.py - latest"
GATE = "Nemo_CICD_Test"


def report_of(*jobs: Job, findings: tuple = (), **changes: object) -> str:  # type: ignore[type-arg]
    attempt = max((job.attempt for job in jobs), default=1)
    done = all(job.status == "completed" for job in jobs)
    red = any(job.conclusion == "failure" for job in jobs)
    run = make_run(
        attempt=attempt, status="completed" if done else "in_progress", conclusion="failure" if red and done else None
    )
    facts = Facts(pull=make_pull(), runs=[run], jobs={7: jobs} if jobs else {}, findings=findings)
    return render_report(assemble(replace(facts, **changes), CONFIG))  # type: ignore[arg-type]


def test_one_failed_job() -> None:
    job = make_job()
    body = report_of(job, make_job(GATE, id=9), findings=(make_finding(job),), changed_files=frozenset())
    first, second = body.split("\n\n")[:2]
    assert first == "### 🔴 Out of GPU memory on rank 5 of 8"
    assert second.startswith(
        f"Commit `{HEAD[:7]}` · [`CICD Megatron-LM`](https://github.com/o/r/actions/runs/7), attempt 1"
    )
    assert "**Rank 5 ran out of GPU memory; 7 ranks died of it**" in body
    assert "`megatron/core/attention.py:412`, not changed by this pull request" in body
    assert "5 failed first; 0–4, 6–7 only followed" in body
    assert f"[`{MODELS}`]({job.html_url})" in body
    assert "**Re-run:** will not help" in body
    assert GATE not in body


def test_a_changed_file_is_told() -> None:
    files = frozenset({"megatron/core/attention.py"})
    assert "a file that this pull request changes" in report_of(
        make_job(), findings=(make_finding(),), changed_files=files
    )


def test_a_retryable_failure_says_what_to_type() -> None:
    found = make_diagnosis(category=Category.NETWORK, retryable=True)
    body = report_of(make_job(), findings=(make_finding(diagnosis=found),))
    assert "**Re-run:** may help: network trouble passes. Comment `/mlm rerun unit models`" in body


def test_with_several_failed_jobs_the_hint_is_to_rerun_all_that_failed() -> None:
    found = make_diagnosis(category=Category.NETWORK, retryable=True)
    jobs = make_job(), make_job(DATA, id=101)
    body = report_of(*jobs, findings=tuple(make_finding(job, diagnosis=found) for job in jobs))
    assert "Comment `/mlm rerun failed`" in body
    assert "### 🔴 Out" not in body
    assert "in 2 jobs" in body.split("\n")[0]


def test_two_causes_are_counted() -> None:
    jobs = make_job(), make_job(DATA, id=101)
    other = make_diagnosis(fingerprint="f" * 16, category=Category.PORT_COLLISION)
    body = report_of(*jobs, findings=(make_finding(jobs[0]), make_finding(jobs[1], diagnosis=other)))
    assert body.startswith("### 🔴 2 root causes in 2 failed jobs\n")
    assert "#### 1. " in body
    assert "#### 2. " in body


def test_without_a_fingerprint_nothing_is_lumped_together() -> None:
    jobs = make_job(), make_job(DATA, id=101)
    vague = make_diagnosis(fingerprint=None, category=Category.UNKNOWN)
    body = report_of(*jobs, findings=tuple(make_finding(job, diagnosis=vague) for job in jobs))
    assert body.startswith("### 🔴 2 root causes")


def test_while_it_runs_again_and_when_it_is_fixed() -> None:
    finding = make_finding()
    again = make_job(conclusion=None, id=200, attempt=2)
    assert report_of(again, findings=(finding,)).startswith("### 🟡 Running again: 1 failed job")
    fixed = make_job(conclusion="success", id=200, attempt=2)
    body = report_of(fixed, findings=(finding,))
    assert body.startswith("### 🟢 The failed job passes in attempt 2 with no change: intermittent\n")
    assert "intermittent rather than gone" in body


def test_some_fixed_and_some_not() -> None:
    red = make_job(id=200, attempt=2)
    green = make_job(DATA, "success", id=201, attempt=2)
    other = make_diagnosis(fingerprint="f" * 16, category=Category.NETWORK, retryable=True)
    old = make_finding(make_job(DATA, id=101), diagnosis=other)
    body = report_of(red, green, findings=(make_finding(), old, make_finding(red)))
    assert body.startswith("### 🔴 Out of GPU memory on rank 5 of 8\n")
    assert "What had failed and passes now" in body


def test_a_newer_run_replaces_what_an_older_one_found() -> None:
    facts = Facts(make_pull(), [make_run(id=8, conclusion="success")], {}, [make_finding()])
    assert render_report(assemble(facts, CONFIG)).startswith("### 🟢 All jobs pass")


def test_only_a_gate() -> None:
    body = report_of(make_job(GATE, id=9))
    assert body.startswith("### 🔴 Only a gate failed")
    assert "no job that it waits for did" in body


def test_a_failed_job_that_could_not_be_explained_is_named() -> None:
    assert report_of(make_job()).startswith("### 🔴 1 failed job, no explanation yet")


def test_an_outdated_comment_says_so() -> None:
    body = report_of(outdated_sha=OTHER, runs=[])
    assert body.startswith("### ⚪ CI has not run for this commit")
    assert f"`{OTHER[:7]}`, an older commit" in body


def test_what_was_not_read_and_trouble_are_told() -> None:
    found = make_diagnosis(read=Read(1, 1, (Skipped("a/b.log", "is encrypted"), Skipped("c", "is cut off"))))
    finding = make_finding(diagnosis=found, notes=("The log artifact x has expired.",))
    body = report_of(make_job(), findings=(finding,), trouble=("The bot could not do its work.",))
    assert "**Not read:** `a/b.log`: is encrypted, and 1 more" in body
    assert "**Note:** The log artifact x has expired." in body
    assert "> [!WARNING]\n> The bot could not do its work." in body


def test_doubt_is_put_into_words() -> None:
    body = report_of(make_job(), findings=(make_finding(diagnosis=make_diagnosis(confidence=Confidence.LOW)),))
    assert "A guess: the logs do not prove it." in body


@pytest.mark.parametrize("size", [1, 40, 400])
def test_it_never_gets_too_long(size: int) -> None:
    found = [
        make_diagnosis(
            fingerprint=f"{number:016x}",
            failed_tests=tuple(f"tests/😀{'x' * 200}.py::test_{test}" for test in range(500)),
            evidence=Evidence("a.log", 1, tuple("😀 @team ``` " + "y" * 300 for _ in range(100))),
            error=Error("E" * 500, "😀" * 5000),
        )
        for number in range(size)
    ]
    jobs = [make_job(f"tests/unit_tests/{number}/*.py - latest", id=number) for number in range(size)]
    findings = tuple(make_finding(job, diagnosis=one) for job, one in zip(jobs, found, strict=True))
    body = report_of(*jobs, findings=findings)
    assert length(body) <= MAX_LENGTH
    assert "more" in body
    html = MarkdownIt("gfm-like", {"html": True}).render(body)
    assert html.count("<details>") == html.count("</details>")
    assert body.count("```") % 2 == 0 or "````" in body


def test_one_diagnosis_as_markdown_and_text() -> None:
    found = make_diagnosis()
    assert render_diagnosis(found).startswith("### 🔴 Out of GPU memory on rank 5 of 8")
    text = render_text(found, color=False)
    assert text.startswith("FAILED  Out of GPU memory on rank 5 of 8\n")
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b[31m" in render_text(found, color=True)


def test_a_log_cannot_move_the_terminals_cursor() -> None:
    found = make_diagnosis(error=Error("X", "a\x1b[2Jb\x07"), evidence=Evidence("e", 1, ("\x1b]0;t\x07c",)))
    assert "\x1b" not in render_text(found, color=False)


def test_a_passed_job() -> None:
    found = make_diagnosis(passed=True, category=None, culprit_ranks=(), victim_ranks=(), summary="all passed")
    assert render_diagnosis(found).startswith("### 🟢 Nothing failed")
    assert render_text(found, color=False).startswith("PASSED")


@pytest.mark.parametrize("category", list(Category))
def test_every_category_has_words(category: Category) -> None:
    for retryable in (True, False):
        body = render_diagnosis(make_diagnosis(category=category, retryable=retryable))
        assert "**Re-run:**" in body


def test_the_hint_knows_jobs_that_a_new_attempt_copied() -> None:
    found = make_diagnosis(category=Category.NETWORK, retryable=True)
    copied = make_job(id=300, attempt=2)
    body = report_of(copied, make_job(DATA, "success", id=301, attempt=2), findings=(make_finding(diagnosis=found),))
    assert "Comment `/mlm rerun unit models`" in body


def test_a_headline_counts_ranks_that_would_fill_it() -> None:
    found = make_diagnosis(culprit_ranks=tuple(range(1, 512, 2)), victim_ranks=tuple(range(0, 512, 2)))
    first, _, rest = render_diagnosis(found).partition("\n")
    assert first == "### 🔴 Out of GPU memory on 256 of 512 ranks"
    assert "**Ranks:** 1, 3, 5, 7, " in rest
    assert len(rest) < 3_000
