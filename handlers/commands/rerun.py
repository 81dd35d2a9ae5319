"""`/mlm rerun …`: which jobs were meant, which call of GitHub does it, and whether it may be made now or later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from handlers.audit import Deed, of_run, record
from handlers.budgets import accounts, give_back, spend
from handlers.context import Context, Job, Pull, RefusedError, Run, Task
from handlers.dependents import dependents_of, gpu_jobs
from handlers.guard import Refusal
from handlers.labels import read_before
from handlers.permissions import may
from handlers.render import replies, told
from handlers.render.safe_text import code
from handlers.reruns import Order, UnknownStartError, already_started, guarded, is_running, start, stop, was_started
from handlers.runs import candidates, main_run, mirror_sha, runs_of_head
from handlers.wishes import Wish, forget, remember

from .asking import Ask, Outcome
from .choosing import Call, Declined, decide, misspelt
from .grammar import Rerun

#: The comment is brought up to date once GitHub shows the new attempt.
SETTLE_S = 5.0


async def rerun(command: Rerun, ask: Ask, ctx: Context) -> Outcome:
    """Resolve, guard, call, and say what was started, what waits, or why not."""
    pull = ask.pull
    if pull is None:
        raise ValueError("a re-run needs a pull request")
    if command.sha is not None and not pull.head_sha.startswith(command.sha):
        return Outcome(told.other_sha(command.sha, pull.head_sha), "confused")
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is None:
        return await without_run(pull, ctx)
    if await was_started(order_key(ask.key), run, ctx):
        return _started(run, run.attempt, "what you asked for", ask)
    if refusal := await guarded(pull, run, ctx, asked_at=ask.at):
        if refusal.reason == "running":
            return await _later(command, ask, run, ctx)
        return await _refused(refusal, ask, ctx)
    jobs = await ctx.github.jobs(run.id)
    if any(job.attempt > run.attempt for job in jobs):  # somebody was quicker: these only just began
        return await _later(command, ask, await ctx.github.run(run.id), ctx)
    decided = decide(command, candidates(jobs, ctx.config.jobs), jobs)
    if isinstance(decided, Declined):
        return Outcome(decided.text, "confused")
    what = sentence(decided, jobs, ctx)
    if command.dry_run:
        return Outcome(f"Dry run: I would start {replies.run_link(run, attempt=run.attempt + 1)}: {what}.")
    return await _carry_out(replace(decided, what=what), jobs, run, ask, ctx)


async def without_run(pull: Pull, ctx: Context) -> Outcome:
    """Say why there is nothing to act upon."""
    mirrored = await mirror_sha(pull.number, ctx) == pull.head_sha
    text = replies.no_run(pull.head_sha, mirrored=mirrored, draft=pull.draft, vetting=ctx.config.vetting)
    return Outcome(text, "confused")


def sentence(call: Call, jobs: Sequence[Job], ctx: Context) -> str:
    """Say what runs again, with the number of jobs that GitHub repeats because they depend on it."""
    if call.api == "all":
        return f"{call.what}. {gpu_jobs([job.name for job in jobs], ctx.config.jobs)} of them run on GPUs"
    again = told.again(dependents_of(call.names, jobs, ctx.config.jobs)) if call.names else ""
    return f"{call.what}{again}{call.tail}"


async def _refused(refusal: Refusal, ask: Ask, ctx: Context) -> Outcome:
    text = replies.refused(refusal, config=ctx.config)
    await _note(ask, "re-run", f"refused: {refusal.reason.replace('_', ' ')}", refusal.run, ctx, done=False)
    return Outcome(text, "confused")


async def _note(  # noqa: PLR0913 - the parts of a deed
    ask: Ask, what: str, why: str, run: Run, ctx: Context, *, done: bool = True, attempt: int = 0
) -> None:
    if ask.pull is not None:
        fields = of_run(run, attempt=attempt or None)
        deed = Deed(what, ask.by, why, done=done, comment_id=ask.comment_id, **fields)
        await record(ask.pull.number, deed, ctx)


async def _later(command: Rerun, ask: Ask, run: Run, ctx: Context) -> Outcome:
    """A run in progress cannot be re-run: remember the wish; with `--now` stop the run first."""
    pull, line = ask.pull, _as_typed(ask.line)
    if pull is None:
        raise ValueError("a re-run needs a pull request")
    ours = await already_started(run.id, run.attempt, ctx) is not None
    # Somebody was quicker: a person with a mouse, or another bot that obeys the same comment.
    others = run.attempt > 1 and run.started_at is not None and run.started_at >= ask.at
    if (ours or others) and not command.now:
        return await _refused(Refusal("running", run), ask, ctx)
    if unclear := misspelt(command, candidates(await ctx.github.jobs(run.id), ctx.config.jobs)):
        return Outcome(unclear.text, "confused")
    if command.now and not (await may("cancel", ask.people, pull, ctx)).allowed:
        return Outcome(f"{replies.run_link(run)} is in progress, and you may not cancel it. Leave out `--now`.", "-1")
    if command.dry_run:
        how = "cancel it and then do this" if command.now else "remember this until it is done"
        return Outcome(f"Dry run: {replies.run_link(run)} is in progress; I would {how}.")
    before = await remember(pull.number, Wish(ask.key, ask.line, pull.head_sha, ask.task.data), ctx)
    text = told.stopping(run, line) if command.now else told.waits(run, line)
    if command.now:
        try:
            await stop(run, ctx)  # that it ended by itself meanwhile is all that is waited for
        except RefusedError as error:
            await forget(pull.number, ctx)
            return Outcome(replies.github_said(error.status, error.message), "confused")
        await _note(ask, "cancel", "to run again at once (--now)", run, ctx)
    else:
        await _note(ask, "re-run put off", "the run is in progress", run, ctx)
    return Outcome(
        text + (f" It replaces an earlier wish: {_as_typed(before.line)}." if before else ""), "rocket", waits=True
    )


def _as_typed(line: str) -> str:
    return code(f"/mlm {line}", limit=300)


def order_key(line_key: str) -> str:
    """Under which key it is noted that a line of a comment starts a re-run."""
    return f"rerun-{line_key}"


async def _carry_out(call: Call, jobs: Sequence[Job], run: Run, ask: Ask, ctx: Context) -> Outcome:
    if ask.pull is None:
        raise ValueError("a re-run needs a pull request")
    # Logs and artifacts of this attempt may be gone once there is another. Reading takes its time, and a push meanwhile
    # would have its unvetted commit tested: the guard has to look again.
    await read_before(run, ask.pull, ctx)
    if refusal := await guarded(ask.pull, run, ctx, asked_at=ask.at):
        return await _refused(refusal, ask, ctx)
    charged = accounts(ask.pull.number, ask.by, ctx)
    if spent := await spend(charged, _gpu_jobs(call, jobs, ctx), spender=ask.key, ctx=ctx):
        await _note(ask, "re-run", told.budget(spent), run, ctx, done=False)
        return Outcome(told.budget(spent), "-1")
    requests: dict[str, Callable[[], Awaitable[None]]] = {
        "all": lambda: ctx.github.rerun(run.id),
        "failed": lambda: ctx.github.rerun_failed(run.id),
        "job": lambda: ctx.github.rerun_job(call.job_id),
    }
    order = Order(key=order_key(ask.key), by=ask.by, why=f"command: {call.api}", extra={})
    try:
        attempt = await start(run, requests[call.api], order, ctx)
    except RefusedError as error:
        await give_back(charged, spender=ask.key, ctx=ctx)
        if is_running(error):
            return await _refused(Refusal("running", run), ask, ctx)
        text = replies.github_said(error.status, error.message)
        await _note(ask, "re-run", text, run, ctx, done=False)
        return Outcome(text, "confused")
    except UnknownStartError as unknown:
        text = told.start_unknown(unknown.run, unknown.attempt, how=f"comment {_as_typed(ask.line)} again")
        await _note(ask, "re-run", text, run, ctx, done=False)
        return Outcome(text, "confused")
    await _note(ask, f"re-run ({call.api})", call.what, run, ctx, attempt=attempt)
    return _started(run, attempt, call.what, ask)


def _gpu_jobs(call: Call, jobs: Sequence[Job], ctx: Context) -> int:
    if call.api == "all":
        return gpu_jobs([job.name for job in jobs], ctx.config.jobs)
    again = dependents_of(call.names, jobs, ctx.config.jobs) if call.names else None
    return gpu_jobs(call.names, ctx.config.jobs) + (again.gpu_jobs if again else 0)


def _started(run: Run, attempt: int, what: str, ask: Ask) -> Outcome:
    number = ask.pull.number if ask.pull else None
    follow_up = Task("report", ask.task.repo, key=f"rerun-{run.id}-{attempt}", pull=number, delay_s=SETTLE_S)
    return Outcome(replies.rerun_started(run, attempt=attempt, what=what), "rocket", (follow_up,))
