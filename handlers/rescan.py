"""Read what there is in a repository, against what we know: ended runs, labels and pushes that no delivery told us of.

The first look at a repository only notes how things stand: nobody asked the bot about what was there before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from .context import Context, Pull, Run, Task
from .labels import catch_up, note_labels
from .reporting import speaks_of_another_commit
from .runs import ended_key, mirrored_pull

log = structlog.get_logger()

BASELINE = "rescan-baseline"


async def rescan(task: Task, ctx: Context) -> list[Task]:
    """Return the work that was missed; it is the same, under the same keys, that the deliveries would have led to."""
    pulls = await ctx.github.open_pulls()
    known = await ctx.store.recall(BASELINE)
    baseline = await ctx.store.once(BASELINE, {"at": ctx.now().isoformat()})
    if known is None:
        for pull in pulls:
            await note_labels(pull, ctx)
        log.info("rescan.baseline", pulls=len(pulls))
        return []
    await ctx.store.remember(BASELINE, baseline)  # what is not touched for months is forgotten
    labels = [follow_up for pull in pulls for follow_up in await catch_up(pull, task, ctx)]
    runs = [
        _ended(run, task)
        for run in await ctx.github.runs()
        if run.created_at.isoformat() > baseline["at"] and await _was_missed(run, pulls, ctx)
    ]
    moved = [_moved(pull, task) for pull in pulls if await speaks_of_another_commit(pull, ctx)]
    log.info("rescan.done", pulls=len(pulls), labels=len(labels), runs=len(runs), moved=len(moved))
    return [*labels, *runs, *moved]


def _moved(pull: Pull, task: Task) -> Task:
    return Task("report", task.repo, key=f"rescan-{task.key}-{pull.head_sha}", pull=pull.number)


async def _was_missed(run: Run, pulls: Sequence[Pull], ctx: Context) -> bool:
    number = mirrored_pull(run, ctx.config)
    heads = {pull.head_sha for pull in pulls if number in {None, pull.number}}
    if run.status != "completed" or run.head_sha not in heads:
        return False
    return await ctx.store.recall(ended_key(run.id, run.attempt)) is None


def _ended(run: Run, task: Task) -> Task:
    data = {"event": "workflow_run", "action": "completed", "data": {"run_id": run.id, "attempt": run.attempt}}
    return Task("delivery", task.repo, key=f"rescan-{run.id}-{run.attempt}", data=data)
