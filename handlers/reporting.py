"""Bring the ONE comment of a pull request up to date with what is known about its present head."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from analyzers.verdict.relation import split_location
from config.repo import RepoConfig

from . import check_report
from .context import Context, Job, JobFinding, Pull, RefusedError, Run, Task
from .events import RED
from .known_flakes import with_flakes
from .memory import flakes, muted_jobs
from .placing import place_cause, read_codeowners
from .render import replies, told
from .render.report import render_report
from .render.safe_text import code, count, prose
from .render.view import WORST_FIRST, Cause, JobView, Report
from .rerun_hint import rerun_hint
from .runs import (
    failed_leaves,
    mirror_sha,
    newest_per_workflow,
    pulls_of_run,
    runs_of_head,
    shown_name,
)
from .standing import newest_findings, read_past, run_view, standing

log = structlog.get_logger()

KEY = "report"
#: Jobs that the bot failed to examine and that are named.
MOST_TROUBLES = 3
#: Begins a comment that could not be brought up to date.
OUT_OF_DATE = "> [!WARNING]\n> "
#: Findings of one run that come in quick succession share an edit of the comment.
WINDOW_S = 10


def merge_queue_key(number: int) -> str:
    """Under which key the newest merge-queue run of a pull request is remembered."""
    return f"merge-queue-{number}"


def _trouble_key(number: int, head_sha: str) -> str:
    """Under which key it is remembered where the bot itself failed."""
    return f"trouble-{number}-{head_sha}"


async def note_trouble(pull: Pull, about: str, text: str, ctx: Context) -> None:
    """Have the comment say that the bot failed to look into something, until that is forgotten; `text` is Markdown."""
    await ctx.store.change(_trouble_key(pull.number, pull.head_sha), lambda known: {**(known or {}), about: text})


async def forget_trouble(pull: Pull, about: str, ctx: Context) -> None:
    """Take back what was noted: it was looked into after all."""
    key = _trouble_key(pull.number, pull.head_sha)
    if about in (await ctx.store.recall(key) or {}):
        await ctx.store.change(key, lambda known: {name: text for name, text in (known or {}).items() if name != about})


async def report_task(task: Task, number: int, run: Run, job: Job, ctx: Context) -> Task:
    """Schedule the comment: at once for a run's first finding, then at most once per window."""
    first = await ctx.store.once(f"reported-{run.id}-{run.attempt}", {"job_id": job.id})
    if first["job_id"] == job.id:
        return Task("report", task.repo, key=f"job-{job.id}-{task.key}", pull=number)
    now_s = ctx.now().timestamp()
    window = math.floor(now_s / WINDOW_S) + 1
    key = f"run-{run.id}-{run.attempt}-window-{window}"
    return Task("report", task.repo, key=key, pull=number, delay_s=window * WINDOW_S - now_s)


async def on_run_requested(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """A run begins, or a new attempt of one: a comment that says otherwise is not true any more."""
    run = await ctx.github.run(int(data["run_id"]))
    key = f"requested-{run.id}-{data['attempt']}"
    pulls = [pull.number for pull in await pulls_of_run(run, ctx)]
    return [
        Task("report", task.repo, key=key, pull=number)
        for number in pulls
        if await ctx.store.recall(_said_key(number)) is not None
    ]


def _said_key(number: int) -> str:
    """Under which key it is remembered what the comment is about."""
    return f"report-{number}"


async def speaks_of_another_commit(pull: Pull, ctx: Context) -> bool:
    """Tell whether the comment was made for a commit that is the head no more."""
    said = await ctx.store.recall(_said_key(pull.number))
    return said is not None and said["head_sha"] != pull.head_sha


@dataclass(frozen=True)
class Facts:
    """What the comment is made from.

    `jobs` holds the newest attempt of each run that matters; `past` all attempts of those whose newest one leaves open
    how a failed job stands.
    """

    pull: Pull
    runs: Sequence[Run]
    jobs: Mapping[int, Sequence[Job]]
    findings: Sequence[JobFinding]
    past: Mapping[int, Sequence[Job]] = field(default_factory=dict)
    queue_run: int | None = None
    muted: frozenset[str] = frozenset()
    changed_files: frozenset[str] | None = None
    codeowners: str | None = None
    outdated_sha: str | None = None
    trouble: tuple[str, ...] = field(default=())
    no_run: str = ""


async def report(task: Task, ctx: Context) -> list[Task]:
    """Create or edit the comment, if there is something to say or to correct."""
    number = task.pull if task.pull is not None else int(task.data["pull"])
    pull = await ctx.github.pull(number)
    if pull.state != "open":
        return []
    said = await ctx.store.recall(_said_key(number))
    facts = await _gather(pull, said or {}, ctx)
    # A long comment takes a while to make: in a thread the event loop has its turns meanwhile.
    view = await asyncio.to_thread(assemble, facts, ctx.config, report_url=ctx.report_url)
    worth_saying = said is not None or _worth_saying(view, ctx.config)
    if worth_saying or ctx.config.check.required:
        await check_report.publish(view, ctx)
    if not worth_saying or ctx.config.mute_label in pull.labels:
        return []
    try:
        await ctx.comments.upsert(number, key=KEY, body=await asyncio.to_thread(render_report, view))
    except RefusedError as error:
        # A locked conversation or a lost permission: trying again would only be refused again.
        log.warning("report.refused", pull=number, status=error.status, why=error.message)
        return []
    await ctx.store.remember(_said_key(number), {"head_sha": pull.head_sha, "before": facts.outdated_sha})
    log.info("report.posted", pull=number, causes=len(view.causes))
    return []


async def apologize_for(task: Task, ctx: Context) -> None:
    """Say on top of the comment that it could not be brought up to date; the next report replaces all of it."""
    number = task.pull if task.pull is not None else int(task.data["pull"])
    pull = await ctx.github.pull(number)
    there = await ctx.comments.find(number, key=KEY)
    if pull.state != "open" or ctx.config.mute_label in pull.labels:
        return
    if there is None and not await ctx.store.findings(head_sha=pull.head_sha):
        return  # there may be nothing to report
    again = f"Comment {code('/mlm analyze')} to have it tried again."
    body = f"{OUT_OF_DATE}{told.sorry(task, what='bring this comment up to date', done='', again=again)}\n"
    if there is not None:
        said = there.body.split("\n", 1)[-1]  # without the marker
        body += "\n" + (said.split("\n\n", 1)[-1] if said.startswith(OUT_OF_DATE) else said)
    await ctx.comments.upsert(number, key=KEY, body=body)
    await ctx.store.once(_said_key(number), {"head_sha": pull.head_sha, "before": None})


def _worth_saying(view: Report, config: RepoConfig) -> bool:
    """A green pull request is left in peace; a mistake in the settings alone is no reason to speak either."""
    own_trouble = len(view.trouble) > len(config.problems)
    return bool(view.causes or view.unexplained or own_trouble or any(run.gates for run in view.runs))


async def _gather(pull: Pull, said: Mapping[str, str | None], ctx: Context) -> Facts:
    muted = await muted_jobs(pull.number, ctx)
    findings = [one for one in await ctx.store.findings(head_sha=pull.head_sha) if _bare(one.job_name) not in muted]
    runs = newest_per_workflow(await runs_of_head(pull, ctx))
    queue = await ctx.store.recall(merge_queue_key(pull.number))
    queue_run = None
    if queue and queue["head_sha"] == pull.head_sha:
        queue_run = int(queue["run_id"])
        findings += await ctx.store.findings(head_sha=queue["sha"])
        runs.append(await ctx.github.run(queue_run))
    matter = [run for run in runs if run.conclusion in RED or any(found.run_id == run.id for found in findings)]
    jobs = {run.id: await ctx.github.jobs(run.id) for run in matter}
    trouble = await ctx.store.recall(_trouble_key(pull.number, pull.head_sha)) or {}
    before = said.get("head_sha") if said.get("head_sha") != pull.head_sha else said.get("before")
    return Facts(
        pull=pull,
        runs=runs,
        jobs=jobs,
        findings=with_flakes(findings, await flakes(ctx)),
        past=await read_past(runs, jobs, findings, ctx),
        muted=muted,
        queue_run=queue_run,
        changed_files=await _changed_files(pull, ctx) if findings else None,
        codeowners=await read_codeowners(findings, ctx),
        outdated_sha=before,
        trouble=(*(prose(problem) for problem in ctx.config.problems), *_told(list(trouble.values()))),
        no_run="" if runs or not said else await _no_run(pull, ctx),
    )


def _told(troubles: Sequence[str]) -> list[str]:
    """The first few in full: whatever broke once may have broken for every job."""
    more = len(troubles) - MOST_TROUBLES
    return [*troubles[:MOST_TROUBLES], *([f"And {count(more, 'more job')} in the same way."] if more > 0 else [])]


async def _no_run(pull: Pull, ctx: Context) -> str:
    mirrored = await mirror_sha(pull.number, ctx) == pull.head_sha
    return replies.no_run(pull.head_sha, mirrored=mirrored, draft=pull.draft, vetting=ctx.config.vetting)


def _bare(job_name: str) -> str:
    """The name that a job shares with its twin on another platform: people mute both."""
    return job_name.removesuffix(" (gb200)")


async def _changed_files(pull: Pull, ctx: Context) -> frozenset[str] | None:
    try:
        return frozenset(await ctx.github.changed_files(pull.number))
    except RefusedError as error:
        log.info("report.no_changed_files", pull=pull.number, status=error.status)
        return None


def assemble(facts: Facts, config: RepoConfig, *, report_url: str | None = None) -> Report:
    """Turn facts into what the comment says: one cause per fingerprint, each job as it stands now."""
    newest = newest_findings(facts.findings, facts.runs)
    explained = {(finding.run_id, finding.job_name) for finding in newest}
    unexplained = [
        JobView(job.name, job.html_url, job.attempt)
        for run in facts.runs
        if run.status == "completed"
        for job in failed_leaves(facts.jobs.get(run.id, ()), config.jobs)
        if (run.id, shown_name(job, config.jobs)) not in explained and job.name not in facts.muted
    ]
    return Report(
        number=facts.pull.number,
        head_sha=facts.pull.head_sha,
        runs=tuple(
            run_view(run, facts.jobs.get(run.id, ()), config.jobs, merge_queue=run.id == facts.queue_run)
            for run in facts.runs
            if _worth_showing(run, facts)
        ),
        causes=_causes(newest, facts, config),
        unexplained=tuple(unexplained),
        outdated_sha=facts.outdated_sha,
        trouble=facts.trouble,
        report_url=report_url,
        no_run=facts.no_run,
    )


def _worth_showing(run: Run, facts: Facts) -> bool:
    """All runs while nothing failed; else those that have to do with the failure."""
    return run.id in facts.jobs or not facts.jobs


def _causes(findings: Sequence[JobFinding], facts: Facts, config: RepoConfig) -> tuple[Cause, ...]:
    groups: dict[str, list[JobFinding]] = {}
    for finding in findings:
        found = finding.diagnosis
        same = f"{found.category}-{found.fingerprint}" if found.fingerprint else f"job-{finding.job_id}"
        groups.setdefault(same, []).append(finding)
    causes = [_cause(group, facts, config) for group in groups.values()]
    return tuple(sorted(causes, key=lambda cause: (WORST_FIRST.index(cause.now), -len(cause.jobs))))


def _cause(group: Sequence[JobFinding], facts: Facts, config: RepoConfig) -> Cause:
    levels = {"high": 0, "medium": 1, "low": 2}
    best = min(group, key=lambda finding: levels[finding.diagnosis.confidence])
    placed = place_cause(best, facts.changed_files, facts.codeowners, config)
    path, _ = split_location(placed.location)
    return Cause(
        diagnosis=placed,
        jobs=tuple(_job_view(finding, facts, config) for finding in sorted(group, key=lambda one: one.job_name)),
        notes=tuple(dict.fromkeys(note for finding in group for note in finding.notes)),
        changed=path in facts.changed_files if path and facts.changed_files is not None else None,
        rerun=rerun_hint(best, facts.jobs.get(best.run_id, ()), config),
    )


def _job_view(finding: JobFinding, facts: Facts, config: RepoConfig) -> JobView:
    run = next(run for run in facts.runs if run.id == finding.run_id)
    jobs, past = facts.jobs.get(run.id, ()), facts.past.get(run.id, ())
    return standing(finding, run, jobs, past, config.jobs)
