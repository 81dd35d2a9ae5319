"""A job failed: fetch its log and its artifact, find out why, and keep the finding for the comment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from analyzers.model import Category, Confidence, Diagnosis

from .artifact_choice import Choice, choose
from .context import Context, Fetched, Job, JobFinding, Pull, RefusedError, Run, Task
from .events import RED
from .job_names import is_consequence, read_name
from .render import told
from .render.redaction import redact_diagnosis, redact_text
from .render.safe_text import code
from .reporting import forget_trouble, merge_queue_key, note_trouble, report, report_task
from .runs import ended_key, failed_leaves, merge_queue_pull, pulls_of_run, shown_name

log = structlog.get_logger()


@dataclass(frozen=True)
class Explained:
    """A diagnosis and what a reader should know about how complete it is."""

    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()


async def on_job_completed(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """Look into a failed job; check what a re-run of ours will test."""
    job_id = int(data["job_id"])
    if planned := data.get("planned"):
        if planned != ctx.config.jobs.plan:
            return []
        return [Task("vet", task.repo, key=f"{data['run_id']}-{data['attempt']}", data=data)]
    return [diagnose_task(job_id, task)]


def diagnose_task(job_id: int, task: Task, *, again: str = "") -> Task:
    """Make the task that explains one job, once; `again` makes it another task."""
    return Task("diagnose", task.repo, key=f"{job_id}{again}", data={"job_id": job_id})


async def on_run_completed(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """Explain what no delivery told us about, bring the comment up to date, grant what waited for this."""
    run = await ctx.github.run(int(data["run_id"]))
    pulls = await pulls_of_run(run, ctx)
    if not pulls:
        return []
    missing = await unexplained(run, await ctx.github.jobs(run.id), ctx)
    key = f"{run.id}-{data['attempt']}"
    tasks = [await _once_more(job, task, again=f"-{key}", ctx=ctx) for job in missing]
    await ctx.store.remember(ended_key(run.id, int(data["attempt"])), {"by": task.key})
    if await ctx.store.recall(f"started-{key}"):
        tasks.append(Task("vet", task.repo, key=f"{key}-end", data={"run_id": run.id, "attempt": data["attempt"]}))
    for pull in pulls:
        # Each explanation brings the comment up to date by itself; this one waits until they had their chance.
        delay_s = 30.0 if missing else 0.0
        tasks.append(Task("report", task.repo, key=f"run-{key}", pull=pull.number, delay_s=delay_s))
        if await ctx.store.recall(f"wish-{pull.number}"):
            tasks.append(Task("wish", task.repo, key=key, pull=pull.number))
        if await ctx.store.recall(f"rerun-wish-{pull.number}"):
            tasks.append(Task("rerun-wish", task.repo, key=key, pull=pull.number))
        elif ctx.config.retry.enabled and run.conclusion in RED and run.attempt == 1:
            tasks.append(Task("retry", task.repo, key=key, data={"run_id": run.id}, pull=pull.number))
    return tasks


async def _once_more(job: Job, task: Task, *, again: str, ctx: Context) -> Task:
    """Make the task of an unexplained job: the same one, which may be at work still, unless GitHub refused that."""
    refused = await ctx.store.recall(_refused_key(job.id))
    return diagnose_task(job.id, task, again=again if refused else "")


def _refused_key(job_id: int) -> str:
    return f"refused-{job_id}"


async def unexplained(run: Run, jobs: Sequence[Job], ctx: Context) -> list[Job]:
    """Return the failed leaves without a finding. A new attempt repeats the jobs that it did not run again."""
    leaves = failed_leaves(jobs, ctx.config.jobs)
    return [job for job in leaves if await ctx.store.recall(_leaf_key(run.id, job)) is None]


def _leaf_key(run_id: int, job: Job) -> str:
    ended = job.completed_at.isoformat() if job.completed_at else f"attempt-{job.attempt}"
    return f"leaf-{run_id}-{job.id if job.completed_at is None else job.name}-{ended}"


async def diagnose(task: Task, ctx: Context) -> list[Task]:
    """Explain one failed job and schedule the comment.

    Raises:
        RefusedError: GitHub does not let us look now (a suspended installation); the run's end is another chance.
    """
    try:
        return await _diagnose(task, ctx)
    except RefusedError as error:
        await ctx.store.remember(_refused_key(int(task.data["job_id"])), {"status": error.status})
        raise


async def _diagnose(task: Task, ctx: Context) -> list[Task]:
    job = await ctx.github.job(int(task.data["job_id"]))
    if is_consequence(job.name, ctx.config.jobs) or job.conclusion == "success":
        return []
    run = await ctx.github.run(job.run_id)
    pulls = await pulls_of_run(run, ctx)
    if not pulls:
        log.info("job.without_pull", job_id=job.id, run_id=run.id, branch=run.head_branch)
        return []
    await keep(job, run, pulls, ctx)
    return [await report_task(task, pull.number, run, job, ctx) for pull in pulls]


async def apologize_for(task: Task, ctx: Context) -> None:
    """Say in the comment that a failed job was not examined for a reason that lies with the bot."""
    job = await ctx.github.job(int(task.data["job_id"]))
    what = f"examine the failed job {code(job.name, limit=150)}"
    text = told.sorry(task, what=what, done="", again=f"Comment {code('/mlm analyze')} to have it tried again.")
    for pull in await pulls_of_run(await ctx.github.run(job.run_id), ctx):
        await note_trouble(pull, job.name, text, ctx)
        await report(Task("report", task.repo, key=f"sorry-{task.key}", pull=pull.number), ctx)


async def keep(job: Job, run: Run, pulls: Sequence[Pull], ctx: Context) -> None:
    """Explain a job and store the finding, without secrets, for each of its pull requests."""
    found = await explain(job, run, ctx)
    # Thousands of failed tests take long to look through: in a thread the event loop has its turns meanwhile.
    diagnosis = await asyncio.to_thread(redact_diagnosis, found.diagnosis)
    for pull in pulls:
        finding = JobFinding(
            pull=pull.number,
            head_sha=run.head_sha,
            run_id=run.id,
            run_name=run.name,
            run_url=run.html_url,
            attempt=job.attempt,
            job_id=job.id,
            job_name=shown_name(job, ctx.config.jobs),
            job_url=job.html_url,
            diagnosis=diagnosis,
            notes=tuple(redact_text(note) for note in found.notes),
        )
        await ctx.store.save_finding(finding)
        await forget_trouble(pull, job.name, ctx)
        if merge_queue_pull(run) is not None:
            await ctx.store.remember(
                merge_queue_key(pull.number), {"run_id": run.id, "sha": run.head_sha, "head_sha": pull.head_sha}
            )
    await ctx.store.once(_leaf_key(run.id, job), {"job_id": job.id, "attempt": job.attempt})
    log.info(
        "job.explained", job_id=job.id, run_id=run.id, category=str(found.diagnosis.category), notes=len(found.notes)
    )


async def explain(job: Job, run: Run, ctx: Context) -> Explained:
    """Read all that can be read of a job; what cannot becomes a note, and the rest still gives an answer."""
    notes: list[str] = []
    job_log = await ctx.files.job_log(job)
    if job_log.path is None:
        notes.append(f"The job's log {job_log.why}.")
    tail = await ctx.files.tail(job_log)
    choice = await _choose(job, run, tail, ctx)
    notes += choice.notes
    artifacts, why = await _fetch(choice, ctx)
    notes += why
    if job_log.path is None and not artifacts:
        return Explained(_unread(job), tuple(notes))
    diagnosis = await ctx.analysis.diagnose(
        job_name=job.name, job_log=job_log if job_log.path else None, artifacts=artifacts
    )
    if diagnosis.passed:
        diagnosis = replace(
            _unread(job), read=diagnosis.read, summary=f"The job is red, but its logs show no failure{_step(job)}."
        )
    return Explained(diagnosis, tuple(notes))


async def _choose(job: Job, run: Run, tail: str, ctx: Context) -> Choice:
    name = read_name(job.name, ctx.config.jobs, runner_labels=job.runner_labels)
    try:
        artifacts = await ctx.github.artifacts(run.id)
    except RefusedError as error:
        return Choice(
            notes=(f"The artifacts of the run could not be listed: GitHub said {error.status}, {error.message}.",)
        )
    return choose(artifacts, job=job, test_case=name.test_case, log_tail=tail)


async def _fetch(choice: Choice, ctx: Context) -> tuple[list[Fetched], list[str]]:
    """Fetch one readable upload per group; an upload that cannot be read is told only if none of its group can."""
    fetched: list[Fetched] = []
    notes: list[str] = []
    for group in choice.groups:
        failures: list[str] = []
        for artifact in group:
            got = await ctx.files.artifact(artifact)
            if got.path is not None:
                fetched.append(got)
                break
            failures.append(f"The log artifact {artifact.name} {got.why}.")
        else:
            notes += failures
    return fetched, notes


def _unread(job: Job) -> Diagnosis:
    """All that can be said of a job without its logs: how it ended, and in which step."""
    if job.conclusion == "cancelled":
        category, what = Category.CANCELLED, "was cancelled"
    elif job.conclusion == "timed_out":
        category, what = Category.JOB_TIMEOUT, "ran out of time"
    else:
        category, what = Category.UNKNOWN, "failed"
    return Diagnosis(
        passed=False,
        category=category,
        retryable=False,
        confidence=Confidence.LOW,
        summary=f"The job {what}{_step(job)}; none of its logs could be read.",
    )


def _step(job: Job) -> str:
    failed = [step.name for step in job.steps if step.conclusion in {"failure", "timed_out", "cancelled"}]
    return f" in step {failed[0]}" if failed else ""
