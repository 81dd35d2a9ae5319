"""`/mlm queue`, `logs`, `why`: where things stand, where they can be read, and what the bot did about them."""

from __future__ import annotations

from handlers.artifact_choice import choose
from handlers.audit import history
from handlers.context import Context, Job, RefusedError, Run
from handlers.job_names import read_name
from handlers.render import replies, told
from handlers.render.safe_text import code, count, link
from handlers.runs import candidates, failed_leaves, main_run, runs_of_head
from handlers.selection import Unresolved, select

from .asking import Ask, Outcome
from .choosing import unresolved
from .grammar import Plain
from .rerun import without_run

#: Jobs whose logs are looked up for one command.
MOST = 5


async def queue(_command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Say where the run of this pull request stands among those that wait for approval, and for how long."""
    run = await _run(ask, ctx)
    if isinstance(run, Outcome):
        return run
    # GitHub's approval takes the oldest run first, so the time of creation is the order.
    waiting = sorted(await ctx.github.runs(status="waiting"), key=lambda one: (one.created_at, one.id))
    same = [one for one in waiting if one.name == run.name]
    where = f"the environment {code(ctx.config.queue_environment)}"
    if run.id not in {one.id for one in same}:
        others = f" {count(len(same), 'run')} of others wait there." if same else " Nobody waits there."
        state = "is done" if run.status == "completed" else f"is not waiting for {where}: it is {run.status}"
        return Outcome(f"{replies.run_link(run)} {state}.{others}")
    place = [one.id for one in same].index(run.id) + 1
    since = await _waiting_since(run, ctx)
    ahead = same[: place - 1]
    text = f"{replies.run_link(run)} waits for {where}: position {place} of {len(same)}{since}."
    lines = [f"- {link(code(one.head_branch or one.name), one.html_url)}" for one in ahead[: replies.SHOWN]]
    return Outcome("\n".join([text, *(["", "Before it:", "", *lines] if lines else [])]))


async def _waiting_since(run: Run, ctx: Context) -> str:
    waits = [job for job in await ctx.github.jobs(run.id) if job.status == "waiting" and job.started_at]
    starts = [job.started_at for job in waits if job.started_at is not None]
    return f", for {told.age(ctx.now() - min(starts))}" if starts else ""


async def logs(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Link the log and the artifacts of the jobs that were named; without a name, of those that failed."""
    run = await _run(ask, ctx)
    if isinstance(run, Outcome):
        return run
    jobs = await ctx.github.jobs(run.id)
    picked = failed_leaves(jobs, ctx.config.jobs)
    if command.words:
        words = [part for word in command.words for part in word.split(",") if part]
        found = select(candidates(jobs, ctx.config.jobs), words)
        if isinstance(found, Unresolved):
            return Outcome(unresolved(found, prefix="/mlm logs"), "confused")
        wanted = {item.job_id for item in found.jobs}
        picked = [job for job in jobs if job.id in wanted]
    if not picked:
        return Outcome(f"{replies.run_link(run)} has no failed job. Name one: {code('/mlm logs <job>')}")
    lines = [await _links(job, run, ctx) for job in picked[:MOST]]
    more = [f"- and {len(picked) - MOST} more; name one for its links"] if len(picked) > MOST else []
    return Outcome("\n".join([f"{replies.run_link(run)}:", "", *lines, *more]))


async def _links(job: Job, run: Run, ctx: Context) -> str:
    name = read_name(job.name, ctx.config.jobs, runner_labels=job.runner_labels)
    log = link("log", job.html_url)
    if job.status != "completed":
        return f"- {code(job.name)}: {log}, the job is {job.status}"
    try:
        tail = await ctx.files.tail(await ctx.files.job_log(job))
        choice = choose(await ctx.github.artifacts(run.id), job=job, test_case=name.test_case, log_tail=tail)
    except RefusedError as error:
        return f"- {code(job.name)}: {log}; the artifacts could not be listed (GitHub said {error.status})"
    artifacts = [artifact for group in choice.groups for artifact in group]
    shown = [
        link("artifact", f"{run.html_url}/artifacts/{artifact.id}") + (" (expired)" if artifact.expired else "")
        for artifact in artifacts
    ]
    return f"- {code(job.name)}: {', '.join([log, *shown])}{'' if shown else ', no log artifact'}"


async def why(_command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Show what was done last, by whose word and for which reason."""
    if ask.pull is None:
        raise ValueError("the log of deeds is kept per pull request")
    return Outcome(told.deeds(await history(ask.pull.number, ctx)))


async def _run(ask: Ask, ctx: Context) -> Run | Outcome:
    if ask.pull is None:
        raise ValueError("a run needs a pull request")
    run = main_run(await runs_of_head(ask.pull, ctx), number=ask.pull.number, config=ctx.config)
    return run if run is not None else await without_run(ask.pull, ctx)
