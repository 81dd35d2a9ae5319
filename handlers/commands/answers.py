"""The commands that start nothing on GPUs: help, ping, version, status, labels, analyze, cancel."""

from __future__ import annotations

from importlib.metadata import version as package_version
from typing import Any

from handlers import wishes
from handlers.audit import Deed, of_run, record
from handlers.context import Context, Pull, RefusedError, Run, Task
from handlers.permissions import may
from handlers.plans import plan_for, read_plan
from handlers.render import replies
from handlers.render.report import count_jobs
from handlers.render.safe_text import code, commit, count, link
from handlers.reporting import KEY as REPORT
from handlers.reruns import stop
from handlers.runs import failed_leaves, main_run, mirror_sha, runs_of_head
from handlers.standing import run_view

from .asking import Ask, Outcome
from .grammar import Plain

#: How long somebody without further rights waits until the same logs are read once more.
AGAIN_AFTER_S = 600.0


async def ping(_command: Plain, _ask: Ask, _ctx: Context) -> Outcome:
    """Answer that the bot is there."""
    return Outcome("I am here.")


async def version(_command: Plain, _ask: Ask, _ctx: Context) -> Outcome:
    """Answer which version is running."""
    return Outcome(f"mlm-bot {package_version('mlm-bot')}")


async def status(_command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Say how the newest run of the head stands."""
    found = await _main_run(ask, ctx)
    if isinstance(found, Outcome):
        return found
    jobs = await ctx.github.jobs(found.id)
    leaves = failed_leaves(jobs, ctx.config.jobs)
    waiting = sum(job.status == "waiting" for job in jobs)
    state = count_jobs(run_view(found, jobs, ctx.config.jobs)) or "no job yet"
    state += f", {waiting} of them waiting for approval" if waiting else ""
    lines = [f"{replies.run_link(found)} for {commit(found.head_sha)}: {state}."]
    lines += [f"- {link(code(job.name), job.html_url)}" for job in leaves[: replies.SHOWN]]
    if len(leaves) > replies.SHOWN:
        lines.append(f"- and {len(leaves) - replies.SHOWN} more")
    return Outcome("\n".join(lines))


async def labels(_command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Say what the labels ask for and what the newest run really does."""
    pull = _pull(ask)
    wanted = plan_for(pull.labels, ctx.config)
    lines = [f"The labels ask for: {replies.plan(wanted, ctx.config)}.{replies.outranked(wanted)}"]
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is not None:
        lines.append(f"{replies.run_link(run)}: {await _really(run, ctx)}.")
    table = ["| label | what CI does |", "|---|---|"]
    for rule in ctx.config.plans:
        name = code(rule.label) if rule.label else "none"
        table.append(
            f"| {name} | {replies.plan(plan_for([rule.label] if rule.label else [], ctx.config), ctx.config)} |"
        )
    table += [f"| {code(label)} | {code(image)} image |" for label, image in ctx.config.images.items()]
    table += [f"| {code(label)} | also {code(extra)} |" for label, extra in ctx.config.extras.items()]
    return Outcome("\n".join([*lines, "", *table]))


async def _really(run: Run, ctx: Context) -> str:
    for job in await ctx.github.jobs(run.id):
        if job.name == ctx.config.jobs.plan and job.conclusion == "success":
            found = read_plan(await ctx.files.tail(await ctx.files.job_log(job)), ctx.config)
            return replies.plan(found, ctx.config) if found else "its log does not say what it tests"
    return "it has not read the labels yet"


async def analyze(_command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Read the logs of all failed jobs again and bring the comment up to date."""
    found = await _main_run(ask, ctx)
    if isinstance(found, Outcome):
        return found
    leaves = failed_leaves(await ctx.github.jobs(found.id), ctx.config.jobs)
    if not leaves:
        return Outcome(f"{replies.run_link(found)} has no failed job to look into.")
    if wait := await _too_soon(found, ask, ctx):
        return Outcome(wait, "confused")
    repo = ask.task.repo
    tasks = [Task("diagnose", repo, key=f"{job.id}-{ask.key}", data={"job_id": job.id}) for job in leaves]
    told = await ctx.comments.find(_pull(ask).number, key=REPORT)
    where = f"My {link('comment', told.html_url)}" if told is not None else "My comment"
    what = f"Reading the logs of {count(len(leaves), 'failed job')} again."
    then = "changes if they say something else now, and stays if not."
    if ctx.config.mute_label in _pull(ask).labels:
        then = f"does not change while it is muted: {code('/mlm unmute')}"
    return Outcome(f"{what} {where} {then}", "rocket", tuple(tasks))


async def _too_soon(run: Run, ask: Ask, ctx: Context) -> str:
    """Say when somebody may ask again who could not start a run either; "" if it is not too soon.

    Everybody may read a public repository, and reading logs is work.
    """
    if (await may("rerun", ask.people, ask.pull, ctx)).allowed:
        return ""
    now_s = ctx.now().timestamp()

    def begin(stored: dict[str, Any] | None) -> dict[str, Any]:
        fresh = stored is None or now_s - float(stored["at_s"]) >= AGAIN_AFTER_S
        return {"at_s": now_s, "ask": ask.key} if fresh or stored is None else stored

    begun = await ctx.store.change(f"analyzed-{run.id}-{run.attempt}", begin)
    if begun["ask"] == ask.key:
        return ""
    left_min = max(1, round((float(begun["at_s"]) + AGAIN_AFTER_S - now_s) / 60))
    return (
        f"The logs of {replies.run_link(run)} were read anew a moment ago. You can ask again in {left_min} min; "
        "people who may start re-runs need not wait."
    )


async def cancel(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Cancel the newest run of the head."""
    found = await _main_run(ask, ctx)
    if isinstance(found, Outcome):
        return found
    if found.status == "completed":
        return Outcome(f"{replies.run_link(found)} is done already.", "confused")
    if command.dry_run:
        return Outcome(f"Dry run: I would cancel {replies.run_link(found)}.")
    try:
        stopped = await stop(found, ctx)
    except RefusedError as error:
        return Outcome(replies.github_said(error.status, error.message), "confused")
    if not stopped:
        return Outcome(f"{replies.run_link(found)} is done already.", "confused")
    waited = await wishes.forget_all(_pull(ask).number, ctx)
    deed = Deed("cancel", ask.by, "asked for by command", comment_id=ask.comment_id, **of_run(found))
    await record(_pull(ask).number, deed, ctx)
    dropped = " What waited for its end is dropped too." if waited else ""
    return Outcome(f"Cancelled {replies.run_link(found)}.{dropped}", "rocket")


async def allowed_verbs(rights: dict[str, str], ask: Ask, ctx: Context) -> list[str]:
    """Return the verbs whose right this person has here; `rights` maps a verb to its right."""
    return [verb for verb, right in rights.items() if (await may(right, ask.people, ask.pull, ctx)).allowed]


def _pull(ask: Ask) -> Pull:
    if ask.pull is None:
        raise ValueError("this command needs a pull request")
    return ask.pull


async def _main_run(ask: Ask, ctx: Context) -> Run | Outcome:
    pull = _pull(ask)
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is not None:
        return run
    mirrored = await mirror_sha(pull.number, ctx) == pull.head_sha
    text = replies.no_run(pull.head_sha, mirrored=mirrored, draft=pull.draft, vetting=ctx.config.vetting)
    return Outcome(text, "confused")
