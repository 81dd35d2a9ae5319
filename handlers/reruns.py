"""Start a re-run once, however often the work is repeated after a crash, and check what it tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from .audit import Deed, of_run, record
from .context import Context, Pull, RateLimitedError, RefusedError, Run, Task
from .guard import Refusal, Scene, check
from .plans import read_tested_sha
from .render import replies
from .runs import main_run, mirror_sha, mirrored_pull, pulls_of_run, runs_of_head

log = structlog.get_logger()

FORBIDDEN = 403
CONFLICT = 409
#: How often a re-run is asked for that GitHub leaves us in the dark about.
TRIES = 3


class UnknownStartError(Exception):
    """It is not known whether the attempt was started; to ask once more might start another one."""

    def __init__(self, run: Run, attempt: int) -> None:
        super().__init__(f"attempt {attempt} of run {run.id}")
        self.run = run
        self.attempt = attempt


@dataclass(frozen=True)
class Order:
    """Why a re-run is started: kept for the audit, and found again after a crash."""

    key: str  # the same key never starts a second one
    by: str
    why: str
    extra: dict[str, Any]


async def guarded(pull: Pull, run: Run, ctx: Context, *, asked_at: Any = None) -> Refusal | None:
    """Read everything anew and decide whether `run` may be re-run now."""
    pull = await ctx.github.pull(pull.number)
    newest = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config) or run
    mirror = await mirror_sha(pull.number, ctx) if mirrored_pull(run, ctx.config) == pull.number else None
    scene = Scene(pull=pull, run=run, newest=newest, mirror_sha=mirror, now=ctx.now(), asked_at=asked_at)
    refusal = check(scene, ctx.config)
    if refusal:
        log.info("rerun.refused", pull=pull.number, run_id=run.id, reason=refusal.reason)
    return refusal


async def already_started(run_id: int, attempt: int, ctx: Context) -> dict[str, Any] | None:
    """Return what we noted when we started this attempt, None if we did not."""
    return await ctx.store.recall(f"started-{run_id}-{attempt}")


async def was_started(key: str, run: Run, ctx: Context) -> bool:
    """True if the re-run under `key` was started before a crash: the run has moved on since."""
    record = await ctx.store.recall(key)
    return record is not None and record["run_id"] == run.id and run.attempt > record["attempt"]


async def begun_under(key: str, ctx: Context) -> Run | None:
    """Return the run that was started again under `key`, None if none was."""
    record = await ctx.store.recall(key)
    if record is None:
        return None
    run = await ctx.github.run(int(record["run_id"]))
    return run if run.attempt > int(record["attempt"]) else None


async def start(run: Run, call: Callable[[], Awaitable[None]], order: Order, ctx: Context) -> int:
    """Make the call and return the new attempt's number.

    Raises:
        RefusedError: GitHub said no.
        UnknownStartError: GitHub broke off again and again, and shows no new attempt.
    """
    record = await ctx.store.once(order.key, {"run_id": run.id, "attempt": run.attempt})
    attempt = int(record["attempt"]) + 1
    if run.attempt >= attempt:
        return attempt
    note = {"by": order.by, "why": order.why, "head_sha": run.head_sha, **order.extra}
    await ctx.store.remember(f"started-{run.id}-{attempt}", note)
    try:
        await _call(call, run, attempt, ctx)
    except RefusedError as error:
        if not is_running(error):  # what runs may be ours, started just before a crash
            await ctx.store.forget(f"started-{run.id}-{attempt}")
        raise
    log.info("rerun.started", run_id=run.id, attempt=attempt, by=order.by, why=order.why, head_sha=run.head_sha)
    return attempt


async def _call(call: Callable[[], Awaitable[None]], run: Run, attempt: int, ctx: Context) -> None:
    """Make the call, again if GitHub left it open what became of it and shows no new attempt."""
    for tried in range(TRIES):
        try:
            await call()
        except RateLimitedError as error:
            if not error.unsure:
                raise
        except RefusedError:
            # The try before may have come through after we looked, and then this one is refused.
            if not tried or not await _has_begun(run, attempt, ctx):
                raise
            return
        else:
            return
        if await _has_begun(run, attempt, ctx):
            return
    log.warning("rerun.unknown", run_id=run.id, attempt=attempt)
    raise UnknownStartError(run, attempt)


async def _has_begun(run: Run, attempt: int, ctx: Context) -> bool:
    return (await ctx.github.run(run.id)).attempt >= attempt


def is_running(error: RefusedError) -> bool:
    """Tell a run that somebody else started meanwhile from GitHub's other refusals (worded for runs and for jobs)."""
    return error.status == FORBIDDEN and "already running" in error.message


async def vet(task: Task, ctx: Context) -> list[Task]:
    """After a re-run of ours has resolved what it tests: cancel it unless that is made from the vetted commit.

    The plan job reads the pull request's merge commit at run time; its second parent must be the head that was vetted.
    """
    run_id, attempt = int(task.data["run_id"]), int(task.data["attempt"])
    if await already_started(run_id, attempt, ctx) is None:
        return []
    run = await ctx.github.run(run_id)
    tested = await _tested_sha(run, ctx)
    if tested is None:
        log.warning("vet.unread", run_id=run_id, attempt=attempt)
        return []
    if tested == run.head_sha or run.head_sha in list(await ctx.github.commit_parents(tested))[1:]:
        return []
    log.warning("vet.mismatch", run_id=run_id, attempt=attempt, tested=tested, vetted=run.head_sha)
    cancelled = run.attempt == attempt and run.status != "completed" and await _cancel(run, ctx)
    why = f"it would have tested {tested[:12]}, which is not made from the vetted commit"
    for number in await _numbers(run, ctx):
        await record(number, Deed("cancel", ctx.app_slug, why, done=cancelled, **of_run(run)), ctx)
        body = replies.unvetted(run, tested=tested, cancelled=cancelled, vetting=ctx.config.vetting)
        await ctx.comments.upsert(number, key=f"vet-{run_id}-{attempt}", body=body)
    return []


async def _numbers(run: Run, ctx: Context) -> list[int]:
    """The head may have moved: that is what this is about, so the branch name counts here."""
    mirrored = mirrored_pull(run, ctx.config)
    if mirrored is not None:
        return [mirrored]
    return [pull.number for pull in await pulls_of_run(run, ctx)]


async def _tested_sha(run: Run, ctx: Context) -> str | None:
    for job in await ctx.github.jobs(run.id):
        if job.name == ctx.config.jobs.plan and job.conclusion == "success":
            return read_tested_sha(await ctx.files.tail(await ctx.files.job_log(job)))
    return None


async def _cancel(run: Run, ctx: Context) -> bool:
    try:
        return await stop(run, ctx)
    except RefusedError as error:
        log.warning("vet.not_cancelled", run_id=run.id, status=error.status, why=error.message)
        return False


async def stop(run: Run, ctx: Context) -> bool:
    """Have a run cancelled; False if it had ended by itself.

    Raises:
        RefusedError: GitHub said no.
    """
    try:
        await ctx.github.cancel(run.id)
    except RefusedError as error:
        if error.status != CONFLICT:
            raise
        # It may have ended by a try of this very call that GitHub carried out and did not answer.
        return (await ctx.github.run(run.id)).conclusion == "cancelled"
    return True


async def apologize_for(task: Task, ctx: Context) -> None:
    """Say that nobody has checked what a re-run of ours tests."""
    run_id, attempt = int(task.data["run_id"]), int(task.data["attempt"])
    if await already_started(run_id, attempt, ctx) is None:
        return
    run = await ctx.github.run(run_id)
    body = replies.unchecked(run, attempt=attempt, task=task, plan=ctx.config.jobs.plan)
    for number in await _numbers(run, ctx):
        await ctx.comments.upsert(number, key=f"vet-{run_id}-{attempt}", body=body)
