"""Answers to labels and commands: what was done, or why not and what to type instead. One calm sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from config.repo import RepoConfig, Vetting
from handlers.context import Job, Run, Task
from handlers.guard import Refusal
from handlers.plans import Plan
from handlers.selection import Candidate, Unresolved

from .safe_text import code, commit, count, link, prose

SHOWN = 10


def plan(wanted: Plan, config: RepoConfig) -> str:
    """`full suite (L1), n_repeat 1, lightweight, dev image`."""
    words = config.scope_words.get(wanted.scope, "scope")
    parts = [
        f"{prose(words)} ({code(wanted.scope)})",
        f"n_repeat {wanted.n_repeat}",
        "lightweight (4 steps, no golden values)" if wanted.lightweight else "full length with golden values",
        f"{code(wanted.image)} image",
        *(code(extra) for extra in wanted.extras),
    ]
    return ", ".join(parts)


def run_link(run: Run, *, attempt: int | None = None) -> str:
    """Link a run by its name and attempt."""
    return f"{link(code(run.name), run.html_url)}, attempt {attempt or run.attempt}"


def outranked(wanted: Plan) -> str:
    """Warn that a label has no effect, or weakens what another asked for."""
    if not wanted.outranked or wanted.label is None:
        return ""
    others = ", ".join(code(label) for label in wanted.outranked)
    return f" Note: {code(wanted.label)} outranks {others}; remove it if you want the other."


def label_rerun(wanted: Plan, run: Run, *, attempt: int, config: RepoConfig) -> str:
    """Say that the whole run was started again, and why the whole."""
    return (
        f"Labels obeyed: {plan(wanted, config)}. Started {run_link(run, attempt=attempt)} as a re-run of all jobs, "
        f"because only that makes {code(config.jobs.plan)} read the labels again.{outranked(wanted)}"
    )


def label_already_read(wanted: Plan, run: Run, *, config: RepoConfig) -> str:
    """Say that nothing needs to be done."""
    return f"Labels already read: {run_link(run)} tests {plan(wanted, config)}. Nothing to start.{outranked(wanted)}"


def label_will_be_read(wanted: Plan, run: Run, *, config: RepoConfig) -> str:
    """Say that the run in progress comes to the labels by itself."""
    return (
        f"{run_link(run)} has not read the labels yet and will: {plan(wanted, config)}. "
        f"If it missed them, I start it again when it is done.{outranked(wanted)}"
    )


def label_waits(wanted: Plan, run: Run, *, config: RepoConfig) -> str:
    """Say that a run in progress stands in the way, and what happens then."""
    return (
        f"Wish noted: {plan(wanted, config)}. {run_link(run)} is in progress and read the labels before; "
        f"GitHub refuses a re-run until it is done. I re-run all its jobs then.{outranked(wanted)}"
    )


def label_too_often(wanted: Plan, run: Run, *, config: RepoConfig) -> str:
    """Say that the labels started enough runs of this commit."""
    most = config.limits.label_reruns_per_run
    return (
        f"Labels not obeyed ({plan(wanted, config)}): they already started {most} re-runs of {run_link(run)}. "
        f"Somebody with write access can comment {code('/mlm rerun all')}."
    )


def no_run(head_sha: str, *, mirrored: bool, draft: bool, vetting: Vetting) -> str:
    """Say why there is nothing to run yet, and who can change that."""
    if mirrored:
        return f"CI has not started for {commit(head_sha)} yet. It reads the labels when it does."
    drafted = " This is a draft, which is not mirrored by itself." if draft else ""
    line = vetting.command.format(sha=head_sha)
    return (
        f"There is no CI run for the head {commit(head_sha)}: the commit is not mirrored.{drafted} "
        f"This comment starts one: {code(line)}. It must come from {prose(vetting.who)}."
    )


def refused(refusal: Refusal, *, config: RepoConfig) -> str:
    """Say why a run is not re-run."""
    where = run_link(refusal.run)
    head = commit(refusal.sha or "")
    limits, vetting = config.limits, config.vetting
    line = code(vetting.command.format(sha=refusal.sha or ""))
    push = "Push a commit to get a new run."
    reasons = {
        "closed": "This pull request is closed, so I start nothing.",
        "not_newest": f"There is a newer run: {where}.",
        "head_moved": f"Not started: the head is {head} now, and {where} tests an older commit.",
        "mirror_stale": f"Not started: the mirrored branch is not at the head {head}, so a re-run could test code that "
        f"nobody vetted. This comment mirrors it: {line}. It must come from {prose(vetting.who)}.",
        "newer_than_request": f"Not started: {head} came after your comment. Comment again if you mean that commit.",
        "running": f"Already under way: {where}. GitHub refuses a re-run until it is done. "
        f"{code('/mlm status')} tells how far it is.",
        "too_old": f"Not started: {where} is older than {limits.rerun_days} days; GitHub re-runs no older ones. {push}",
        "too_many": f"Not started: {where} was re-run {limits.reruns_per_run} times, GitHub's limit. {push}",
    }
    return reasons[refusal.reason]


def unvetted(run: Run, *, tested: str, cancelled: bool, vetting: Vetting) -> str:
    """Say that a re-run was stopped because it would have tested something else than what was vetted."""
    done = "I cancelled it" if cancelled else "I could not cancel it: somebody should"
    return (
        f"⚠️ {run_link(run)} was about to test {commit(tested)}, which is not made from the vetted commit "
        f"{commit(run.head_sha)}. {done}. The new head needs {code(vetting.command.format(sha='<its full SHA>'))} "
        f"from {prose(vetting.who)}."
    )


def unchecked(run: Run, *, attempt: int, task: Task, plan: str) -> str:
    """Say that it is not known whether a re-run tests what was vetted."""
    return (
        f"⚠️ I could not check, because of a fault of mine, whether {run_link(run, attempt=attempt)} tests the vetted "
        f"commit {commit(run.head_sha)}. The log of its job {code(plan)} tells what it tests; if that is something "
        f"else, cancel it: {code('/mlm cancel')}. The operator of this bot finds the fault in the log as "
        f"{code(f'{task.name} {task.key}', limit=200)}."
    )


def github_said(status: int, message: str) -> str:
    """Pass on GitHub's refusal."""
    return f"GitHub refused ({status}): {prose(message)}"


def names(items: Iterable[Candidate]) -> str:
    """List jobs by name, at most `SHOWN`."""
    shown = [code(item.name.bucket) for item in items]
    return ", ".join(shown[:SHOWN]) + (f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else "")


def unresolved(miss: Unresolved, *, prefix: str, quote: Sequence[str] = ()) -> str:
    """Say that a selector means nothing or too much, with lines to copy."""
    choices = [code(f"{prefix} {choice}", limit=300) for choice in (quote or miss.choices)[:SHOWN]]
    if miss.ambiguous:
        return f"{code(miss.word)} could mean several jobs. Which? {', '.join(choices)}"
    near = f" The nearest: {', '.join(choices)}" if choices else f" {code('/mlm status')} names the jobs that failed."
    return f"No job of the newest attempt matches {code(miss.word)}.{near}"


def dependents(job: Job | None) -> str:
    """Warn about jobs that repeat along with a build."""
    return "" if job is None else f" All jobs that depend on {code(job.name)} run again too."


def rerun_started(run: Run, *, attempt: int, what: str) -> str:
    """Say which jobs run again, and where."""
    return f"Started {run_link(run, attempt=attempt)}: {what}."


def failed_count(number: int) -> str:
    """`the 3 failed jobs`."""
    return "the failed job" if number == 1 else f"the {count(number, 'failed job')}"
