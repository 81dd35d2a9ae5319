"""The ONE comment of a pull request: the verdict in words, then one block per root cause."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Diagnosis

from .blocks import Detail, cause_block, fold, headline, job_count
from .redaction import redact_diagnosis
from .safe_text import code, commit, count, link, prose
from .view import Cause, JobView, Report, RunView
from .words import is_unrecognised

#: GitHub refuses more than 65,536; what is left is for the hidden marker. Counted as UTF-16 units, the larger count.
MAX_LENGTH = 60_000

#: Causes that are shown unfolded.
OPEN_CAUSES = 2

#: From everything to the bare minimum; the first that fits is posted.
DETAILS = (
    Detail(),
    Detail(excerpt_lines=10, tests=20, also_seen=2),
    Detail(excerpt_lines=0, tests=3, jobs=5, also_seen=0),
    Detail(excerpt_lines=0, tests=1, jobs=3, causes=10, also_seen=0, commands=1),
    Detail(excerpt_lines=0, tests=0, jobs=1, causes=5, also_seen=0, commands=0),
)


def render_report(report: Report) -> str:
    """Render the comment, with less detail until it fits into `MAX_LENGTH`."""
    body = ""
    for detail in DETAILS:
        body = _render(report, detail)
        if length(body) <= MAX_LENGTH:
            return body
    return body.encode("utf-16-le")[: 2 * (MAX_LENGTH - 100)].decode("utf-16-le", "ignore") + "\n\n… and more."


def length(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """Render one job's diagnosis as Markdown, for `mlm analyze --format markdown`."""
    found = redact_diagnosis(diagnosis)
    if found.passed:
        retried = any(attempt.category for attempt in found.attempts)
        return f"### 🟢 Nothing failed in the end\n\n{prose(found.summary)}\n" if retried else "### 🟢 Nothing failed\n"
    cause = Cause(found, jobs=())
    if is_unrecognised(found):
        return f"### ⚪ No failure recognised\n\n{cause_block(cause, Detail())}\n"
    return f"### 🔴 {headline(cause)}\n\n{cause_block(cause, Detail())}\n"


def _render(report: Report, detail: Detail) -> str:
    standing = [cause for cause in report.causes if cause.now in {"failed", "running"}]
    unreached = [cause for cause in report.causes if cause.now == "unreached"]
    fixed = [cause for cause in report.causes if cause.now == "passed"]
    parts = [f"### {_verdict(report, standing, unreached, fixed)}", _facts(report)]
    parts += [f"> [!WARNING]\n> {trouble}" for trouble in report.trouble]
    parts += _causes(standing, detail)
    parts += _rest(report, standing, detail)
    if unreached:
        parts.append(fold("What had failed and was not run again", _listed(unreached, detail)))
    if fixed:
        parts.append(fold("What had failed and passes now", _listed(fixed, detail)))
    if report.report_url:
        parts.append(link("Full report", report.report_url))
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(report: Report, standing: Sequence[Cause], unreached: Sequence[Cause], fixed: Sequence[Cause]) -> str:
    if standing or report.unexplained:
        return _red_verdict(report, standing)
    if gates := [gate for run in report.runs for gate in run.gates]:
        return f"🔴 Only {'a gate' if len(gates) == 1 else 'gates'} failed"
    if unreached:
        jobs = _jobs_of(unreached)
        return (
            f"⚪ Not run again: {job_count(len(jobs))} of before, and attempt {jobs[0].now_attempt} did not come to it"
        )
    running = any(not run.completed for run in report.runs)
    if fixed and not (running and all(job.now_attempt < _newest_attempt(report) for job in _jobs_of(fixed))):
        return _fixed_verdict(fixed)
    if running:
        return "🟡 No failed job so far"
    if any(run.conclusion == "success" for run in report.runs):
        return "🟢 All jobs pass"
    return "⚪ No failed job known for this commit" if report.runs else "⚪ CI has not run for this commit"


def _red_verdict(report: Report, standing: Sequence[Cause]) -> str:
    failed = sum(job.now != "passed" for job in _jobs_of(standing)) + len(report.unexplained)
    if not standing:
        return f"🔴 {job_count(failed)}, no explanation yet"
    if all(cause.now == "running" for cause in standing) and not report.unexplained:
        return f"🟡 Running again: {job_count(failed)} in a new attempt"
    if len(standing) == 1 and not report.unexplained:
        return f"🔴 {headline(standing[0])}{f', in {failed} jobs' if failed > 1 else ''}"
    return f"🔴 {count(len(standing), 'root cause')} in {job_count(failed)}"


def _jobs_of(causes: Sequence[Cause]) -> list[JobView]:
    return [job for cause in causes for job in cause.jobs]


def _newest_attempt(report: Report) -> int:
    return max(run.attempt for run in report.runs)


def _fixed_verdict(fixed: Sequence[Cause]) -> str:
    """The commit is the same one: what passes now without a change was not repaired."""
    jobs = _jobs_of(fixed)
    attempt = max(job.now_attempt for job in jobs)
    who = "The failed job passes" if len(jobs) == 1 else f"All {len(jobs)} failed jobs pass"
    doubt = "" if all(cause.diagnosis.retryable for cause in fixed) else " with no change: intermittent"
    return f"🟢 {who} in attempt {attempt}{doubt}"


def _facts(report: Report) -> str:
    """Commit, runs, attempts, and how many jobs stand how."""
    runs = " · ".join(_run(run) for run in report.runs)
    parts = [f"Commit {commit(report.head_sha)}" + (f" · {runs}" if runs else ""), report.no_run]
    if report.outdated_sha and not _has_result(report):
        parts.append(f"What stood here was about {commit(report.outdated_sha)}, an older commit.")
    return "\n\n".join(part for part in parts if part)


def _has_result(report: Report) -> bool:
    return bool(report.causes or report.unexplained or any(run.completed for run in report.runs))


def _run(run: RunView) -> str:
    state = "" if run.completed else ", still running"
    queue = " in the merge queue" if run.merge_queue else ""
    counts = count_jobs(run)
    return f"{link(code(run.name), run.url)}{queue}, attempt {run.attempt}{state}{f': {counts}' if counts else ''}"


def count_jobs(run: RunView) -> str:
    """`1 failed (+2 jobs that only follow it), 18 passed, 2 skipped`: the numbers of GitHub's own box, told apart."""
    followers = ""
    if run.failed and run.followers:
        verb = "follows" if run.followers == 1 else "follow"
        whom = "it" if run.failed == 1 else "them"
        followers = f" (+{count(run.followers, 'job')} that only {verb} {whom})"
    counts = [
        (run.failed, f"failed{followers}"),
        (0 if run.failed else run.followers, "gate failed" if run.followers == 1 else "gates failed"),
        (run.passed, "passed"),
        (run.skipped, "skipped"),
        (run.cancelled, "cancelled"),
        (run.unfinished, "not finished"),
    ]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def _causes(standing: Sequence[Cause], detail: Detail) -> list[str]:
    """From the third cause on a reader sees a line in the index on top, and unfolds what they want to know."""
    if len(standing) == 1:
        return [cause_block(standing[0], detail)]
    shown = list(enumerate(standing[: detail.causes], start=1))
    blocks = [_index(shown, detail)] if len(standing) > OPEN_CAUSES else []
    for place, cause in shown:
        block = cause_block(cause, detail)
        if place <= OPEN_CAUSES:
            blocks.append(f"#### {place}. {headline(cause)}\n\n{block}")
        else:
            blocks.append(fold(f"<b>{place}. {headline(cause)}</b>", block))
    if len(standing) > len(shown):
        blocks.append(f"… and {len(standing) - len(shown)} more root causes.")
    return blocks


def _index(shown: Sequence[tuple[int, Cause]], detail: Detail) -> str:
    return "\n".join(f"{place}. {headline(cause)}: {_job_links(cause, detail)}" for place, cause in shown)


def _job_links(cause: Cause, detail: Detail) -> str:
    most = min(detail.jobs, 3)
    names = ", ".join(link(code(job.name), job.url) for job in cause.jobs[:most])
    return names + (f" and {len(cause.jobs) - most} more" if len(cause.jobs) > most else "")


def _rest(report: Report, standing: Sequence[Cause], detail: Detail) -> list[str]:
    if report.unexplained:
        return [_unexplained(report.unexplained, detail)]
    return [] if standing else [_gates(run) for run in report.runs if run.gates]


def _unexplained(jobs: Sequence[JobView], detail: Detail) -> str:
    shown = "\n".join(f"- {link(code(job.name), job.url)}" for job in jobs[: detail.causes])
    more = f"\n- and {len(jobs) - detail.causes} more" if len(jobs) > detail.causes else ""
    return f"Failed, and not explained:\n\n{shown}{more}"


def _gates(run: RunView) -> str:
    names = ", ".join(code(gate) for gate in run.gates[:5])
    verb = "fails" if len(run.gates) == 1 else "fail"
    return (
        f"{names} {verb}, but no job that {'it waits' if len(run.gates) == 1 else 'they wait'} for did. "
        f"A job may have been cancelled or lost before it began; see {link('the run', run.url)}."
    )


def _listed(causes: Sequence[Cause], detail: Detail) -> str:
    lines = []
    for cause in causes[: detail.causes]:
        names = ", ".join(link(code(job.name), job.url) for job in cause.jobs[: detail.jobs])
        lines.append(f"- {headline(cause)}: {names}{_suspicion(cause)}")
    if len(causes) > detail.causes:
        lines.append(f"- and {len(causes) - detail.causes} more")
    return "\n".join(lines)


def _suspicion(cause: Cause) -> str:
    """The same commit failed and passed: unless the machine was to blame, the fault is still there."""
    if cause.diagnosis.retryable or cause.now != "passed":
        return ""
    return ". The same commit failed and passed, so this is intermittent rather than gone"
