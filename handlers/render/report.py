"""The ONE comment of a pull request: the verdict in words, then one block per root cause."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Diagnosis

from .blocks import Detail, cause_block, fold, headline, job_count
from .redaction import redact_diagnosis
from .safe_text import code, commit, count, link, prose
from .view import Cause, JobView, Report, RunView

#: GitHub refuses more than 65,536; what is left is for the hidden marker. Counted as UTF-16 units, the larger count.
MAX_LENGTH = 60_000

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
        return f"### 🟢 Nothing failed\n\n{prose(found.summary)}\n"
    cause = Cause(found, jobs=())
    return f"### 🔴 {headline(cause)}\n\n{cause_block(cause, Detail())}\n"


def _render(report: Report, detail: Detail) -> str:
    standing = [cause for cause in report.causes if cause.now != "passed"]
    fixed = [cause for cause in report.causes if cause.now == "passed"]
    parts = [f"### {_verdict(report, standing, fixed)}", _facts(report)]
    parts += [f"> [!WARNING]\n> {prose(trouble)}" for trouble in report.trouble]
    parts += _causes(standing, detail)
    parts += _rest(report, standing, fixed, detail)
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(report: Report, standing: Sequence[Cause], fixed: Sequence[Cause]) -> str:
    failed = sum(len(cause.jobs) for cause in standing) + len(report.unexplained)
    if standing and all(cause.now == "running" for cause in standing) and not report.unexplained:
        return f"🟡 Running again: {job_count(failed)} in a new attempt"
    if len(standing) == 1 and not report.unexplained:
        tail = f", in {len(standing[0].jobs)} jobs" if len(standing[0].jobs) > 1 else ""
        return f"🔴 {headline(standing[0])}{tail}"
    if standing:
        return f"🔴 {count(len(standing), 'root cause')} in {job_count(failed)}"
    if report.unexplained:
        return f"🔴 {job_count(failed)}, no explanation yet"
    if gates := [gate for run in report.runs for gate in run.gates]:
        return f"🔴 Only {'a gate' if len(gates) == 1 else 'gates'} failed"
    if fixed:
        return _fixed_verdict(fixed)
    if any(not run.completed for run in report.runs):
        return "🟡 No failed job so far"
    if any(run.conclusion == "success" for run in report.runs):
        return "🟢 All jobs pass"
    return "⚪ No failed job known for this commit"


def _fixed_verdict(fixed: Sequence[Cause]) -> str:
    jobs = [job for cause in fixed for job in cause.jobs]
    attempt = max(job.now_attempt for job in jobs)
    who = "the failed job passes" if len(jobs) == 1 else f"all {len(jobs)} failed jobs pass"
    return f"🟢 Fixed in attempt {attempt}: {who}"


def _facts(report: Report) -> str:
    """Commit, runs, attempts, and how many jobs stand how."""
    runs = " · ".join(_run(run) for run in report.runs)
    line = f"Commit {commit(report.head_sha)}" + (f" · {runs}" if runs else "")
    if report.outdated_sha:
        line += f"\n\nWhat stood here was about {commit(report.outdated_sha)}, an older commit."
    return line


def _run(run: RunView) -> str:
    counts = [f"{number} {word}" for number, word in _counts(run) if number]
    state = "" if run.completed else ", still running"
    queue = " in the merge queue" if run.merge_queue else ""
    told = f": {', '.join(counts)}" if counts else ""
    return f"{link(code(run.name), run.url)}{queue}, attempt {run.attempt}{state}{told}"


def _counts(run: RunView) -> tuple[tuple[int, str], ...]:
    return (run.failed, "failed"), (run.passed, "passed"), (run.unfinished, "not finished")


def _causes(standing: Sequence[Cause], detail: Detail) -> list[str]:
    if len(standing) == 1:
        return [cause_block(standing[0], detail)]
    shown = standing[: detail.causes]
    blocks = [
        f"#### {place}. {headline(cause)}\n\n{cause_block(cause, detail)}" for place, cause in enumerate(shown, start=1)
    ]
    if len(standing) > len(shown):
        blocks.append(f"… and {len(standing) - len(shown)} more root causes.")
    return blocks


def _rest(report: Report, standing: Sequence[Cause], fixed: Sequence[Cause], detail: Detail) -> list[str]:
    parts = []
    if report.unexplained:
        parts.append(_unexplained(report.unexplained, detail))
    elif not standing:
        parts += [_gates(run) for run in report.runs if run.gates]
    if fixed:
        parts.append(_fixed(fixed, detail))
    if report.report_url:
        parts.append(link("Full report", report.report_url))
    return parts


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


def _fixed(fixed: Sequence[Cause], detail: Detail) -> str:
    lines = []
    for cause in fixed[: detail.causes]:
        names = ", ".join(link(code(job.name), job.url) for job in cause.jobs[: detail.jobs])
        lines.append(f"- {headline(cause)}: {names}{_suspicion(cause)}")
    if len(fixed) > detail.causes:
        lines.append(f"- and {len(fixed) - detail.causes} more")
    return fold("What had failed and passes now", "\n".join(lines))


def _suspicion(cause: Cause) -> str:
    """The same commit failed and passed: unless the machine was to blame, the fault is still there."""
    if cause.diagnosis.retryable:
        return ""
    return ". The same commit failed and passed, so this is intermittent rather than gone"
