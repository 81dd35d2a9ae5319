"""`/mlm rerun …`: which jobs were meant, which call of GitHub does it, and whether it may be made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from handlers.context import Context, Job, RefusedError, Run, Task
from handlers.labels import read_before
from handlers.render import replies
from handlers.render.safe_text import code, count
from handlers.reruns import Order, guarded, start, was_started
from handlers.runs import RERUNNABLE, candidates, main_run, mirror_sha, runs_of_head
from handlers.selection import Candidate, Unresolved, select

from .asking import Ask, Outcome
from .grammar import Rerun

#: The comment is brought up to date once GitHub shows the new attempt.
SETTLE_S = 5.0


@dataclass(frozen=True)
class Call:
    """The one request that does what was asked. `what` ends the sentence "Started attempt 2: …"."""

    api: Literal["all", "failed", "job"]
    what: str
    job_id: int = 0


@dataclass(frozen=True)
class Declined:
    """Nothing is started; `text` says why and what to type instead."""

    text: str


async def rerun(command: Rerun, ask: Ask, ctx: Context) -> Outcome:
    """Resolve, guard, call, and say what was started."""
    pull = ask.pull
    if pull is None:
        raise ValueError("a re-run needs a pull request")
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is None:
        mirrored = await mirror_sha(pull.number, ctx) == pull.head_sha
        vetting = ctx.config.vetting
        text = replies.no_run(pull.head_sha, mirrored=mirrored, draft=pull.draft, vetting=vetting)
        return Outcome(text, "confused")
    key = f"rerun-{ask.key}"
    if await was_started(key, run, ctx):
        return _started(run, run.attempt, "what you asked for", ask)
    if refusal := await guarded(pull, run, ctx, asked_at=ask.at):
        return Outcome(replies.refused(refusal, config=ctx.config), "confused")
    jobs = await ctx.github.jobs(run.id)
    decided = decide(command, candidates(jobs, ctx.config.jobs), jobs)
    if isinstance(decided, Declined):
        return Outcome(decided.text, "confused")
    if command.dry_run:
        return Outcome(f"Dry run: I would start {replies.run_link(run, attempt=run.attempt + 1)}: {decided.what}.")
    return await _carry_out(decided, run, ask, ctx)


async def _carry_out(call: Call, run: Run, ask: Ask, ctx: Context) -> Outcome:
    if call.api == "all" and ask.pull is not None:
        await read_before(run, ask.pull, ctx)
    requests: dict[str, Callable[[], Awaitable[None]]] = {
        "all": lambda: ctx.github.rerun(run.id),
        "failed": lambda: ctx.github.rerun_failed(run.id),
        "job": lambda: ctx.github.rerun_job(call.job_id),
    }
    order = Order(key=f"rerun-{ask.key}", by=ask.by, why=f"command: {call.api}", extra={})
    try:
        attempt = await start(run, requests[call.api], order, ctx)
    except RefusedError as error:
        return Outcome(replies.github_said(error.status, error.message), "confused")
    return _started(run, attempt, call.what, ask)


def _started(run: Run, attempt: int, what: str, ask: Ask) -> Outcome:
    number = ask.pull.number if ask.pull else None
    follow_up = Task("report", ask.task.repo, key=f"rerun-{run.id}-{attempt}", pull=number, delay_s=SETTLE_S)
    return Outcome(replies.rerun_started(run, attempt=attempt, what=what), "rocket", (follow_up,))


def decide(command: Rerun, pool: Sequence[Candidate], jobs: Sequence[Job]) -> Call | Declined:
    """Choose the call: one job, all failed ones, or everything; GitHub has no call for a part of the failed ones."""
    if command.target == "all":
        return Call("all", f"all {count(len(jobs), 'job')}; labels are read again, and everything repeats")
    failed = [item for item in pool if item.failed]
    if command.target == "failed":
        if failed:
            return Call(
                "failed", f"{replies.failed_count(len(failed))} and what depends on them: {replies.names(failed)}"
            )
        if any(job.conclusion in RERUNNABLE for job in jobs):
            return Call("failed", "the failed gates, no other job failed")
        return Declined(f"No job failed in the newest attempt. To repeat everything: {code('/mlm rerun all')}")
    picked = _pick(command, pool)
    if isinstance(picked, Declined):
        return picked
    if green := [item for item in picked if not item.failed]:
        return _forced(green, picked, command)
    return _call_for(picked, failed)


def _pick(command: Rerun, pool: Sequence[Candidate]) -> Sequence[Candidate] | Declined:
    """Resolve what was typed among the jobs that the target allows."""
    kinds = {"unit": {"unit"}, "functional": {"functional"}, "lint": {"lint"}, "build": {"build"}}
    allowed = kinds.get(command.target)
    kind = [item for item in pool if allowed is None or item.name.kind in allowed]
    picked = select(kind, command.selectors, gb200=command.gb200)
    word = "" if command.target == "any" else f" {command.target}"
    if isinstance(picked, Unresolved):
        return Declined(_unresolved(picked, prefix=f"/mlm rerun{word}"))
    if not picked.jobs:
        what = "job" if command.target in {"any", "job"} else f"{command.target} job"
        return Declined(f"No {what} failed in the newest attempt, so there is nothing to re-run.")
    return picked.jobs


def _unresolved(miss: Unresolved, *, prefix: str) -> str:
    quoted = [f"'{choice}'" if any(mark in choice for mark in " *?[") else choice for choice in miss.choices]
    return replies.unresolved(miss, prefix=prefix, quote=quoted)


def _call_for(picked: Sequence[Candidate], failed: Sequence[Candidate]) -> Call | Declined:
    if len(picked) == 1:
        others = len(failed) - 1
        shut = f" ({count(others, 'other failed job')} keeps the gates shut)" if others else ""
        return Call("job", f"{replies.names(picked)} and what depends on it{shut}", picked[0].job_id)
    if {item.job_id for item in picked} == {item.job_id for item in failed}:
        return Call("failed", f"{replies.failed_count(len(failed))} and what depends on them: {replies.names(failed)}")
    return Declined(
        f"{count(len(picked), 'job')} of {len(failed)} failed ones were meant ({replies.names(picked)}), but GitHub "
        f"can re-run only one job or all that failed. Type {code('/mlm rerun failed')} for all {len(failed)}, "
        "or name one job."
    )


def _forced(green: Sequence[Candidate], picked: Sequence[Candidate], command: Rerun) -> Call | Declined:
    """A job that passed runs again only if that is insisted on: its dependents run again with it."""
    if len(picked) == 1 and command.force:
        return Call("job", f"{replies.names(picked)}, which had passed, and what depends on it", picked[0].job_id)
    if len(picked) > 1:
        return Declined(
            f"{replies.names(green)} passed. Leave out what passed, or name one job with {code('--force')}."
        )
    return Declined(
        f"{replies.names(green)} did not fail. With {code('--force')} it runs again, and all that depends on it too."
    )
