"""A run is done: carry out the re-run that somebody wished for while it was in progress."""

from __future__ import annotations

import structlog

from . import slash, wishes
from .audit import Deed, record
from .commands.asking import Outcome
from .context import Context, Pull, Task
from .render import replies, told
from .reruns import already_started
from .runs import main_run, runs_of_head
from .wishes import Wish

log = structlog.get_logger()


async def grant(task: Task, ctx: Context) -> list[Task]:
    """Carry out the wish as if it were said now, by the same people, and let the one answer to it say so.

    What was allowed when it was said is checked again: rights, head and budget may have changed since.
    """
    number = task.pull or 0
    wish = await wishes.recall(number, ctx)
    if wish is None:
        return []
    pull = await ctx.github.pull(number)
    outcome = await _outcome(wish, pull, task, ctx)
    if outcome is None:
        return []
    # An answer that waits again has stored the wish anew; any other is the end of it.
    stored = await wishes.recall(number, ctx)
    if stored == wish and not outcome.waits:
        await wishes.forget(number, ctx)
    log.info("wish.granted", pull=number, line=wish.line, reaction=outcome.reaction)
    return await slash.replace_answer(wish.key, wish.data, outcome, task, ctx)


async def apologize_for(task: Task, ctx: Context) -> None:
    """Let the answer to the wish say that it was given up for a reason that lies with the bot."""
    number = task.pull or 0
    wish = await wishes.recall(number, ctx)
    if wish is None:
        return
    await wishes.forget(number, ctx)
    outcome = await slash.sorry(wish.line, slash.again_key(wish), task, ctx)
    await slash.replace_answer(wish.key, wish.data, outcome, task, ctx)


async def _outcome(wish: Wish, pull: Pull, task: Task, ctx: Context) -> Outcome | None:
    """Return what became of it; None while another run is in progress."""
    if pull.state != "open" or pull.head_sha != wish.head_sha:
        text = "Not started: this pull request is closed." if pull.state != "open" else told.outdated(pull.head_sha)
        by = str(wish.data["editor"])
        await record(pull.number, Deed("re-run", by, text, done=False, head_sha=pull.head_sha), ctx)
        return Outcome(text, "confused")
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is not None and run.status != "completed":
        started = await already_started(run.id, run.attempt, ctx)
        if started is None:
            return None
        if started.get("why") == "labels":
            return Outcome(
                f"Covered by {replies.run_link(run)}, which repeats all jobs because of the labels.", "rocket"
            )
    return await slash.execute_again(wish, pull, task, ctx)
