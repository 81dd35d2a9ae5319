"""All pieces of work, by name: what the durable engine calls, once or, after a crash, again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from . import buttons, failures, granting, labels, reporting, reruns, rescan, retry, slash, wishes
from .context import Context, RateLimitedError, Task

log = structlog.get_logger()

Apology = Callable[[Task, Context], Awaitable[None]]
Work = Callable[[Task, Context], Awaitable[list[Task]]]
OnDelivery = Callable[[Task, dict[str, Any], Context], Awaitable[list[Task]]]
Kind = TypeVar("Kind")
Way = TypeVar("Way")

#: How long work of a newer release waits each time that an older one has met it, in seconds.
NEWER_S = 10.0


async def perform(task: Task, ctx: Context) -> list[Task]:
    """Carry out a task and return what follows from it.

    Safe to repeat: each effect is looked for before it is made.

    Raises:
        RateLimitedError: do it again later.
    """
    return await _known(TASKS, task.name)(task, ctx)


def _known(kinds: Mapping[Kind, Way], kind: Kind) -> Way:
    """Return how it is done; what only a newer release knows is left to it: while one replaces the other both work."""
    if kind not in kinds:
        raise RateLimitedError(f"this release does not know {kind}: it waits for the newer one", after_s=NEWER_S)
    return kinds[kind]


async def apologize(task: Task, ctx: Context) -> None:
    """Tell the reader that a task failed for good, for a reason that lies with the bot."""
    if task.name in APOLOGIES:
        await APOLOGIES[task.name](task, ctx)


async def _apologize_for_delivery(task: Task, ctx: Context) -> None:
    """Whoever commented waits for an answer; what became of a job or a run shows when the run ends."""
    data = dict(task.data["data"])
    if "lines" in data and not data["bots"]:
        await slash.apologize_for(replace(task, data=data), ctx)


async def _delivery(task: Task, ctx: Context) -> list[Task]:
    """Route a delivery to what it means for us; nothing, where another installation of ours is the one that acts."""
    if ctx.config.app not in {None, ctx.app_slug}:
        log.info("delivery.left_to_another", app=ctx.config.app)
        return []
    route = _known(DELIVERIES, (str(task.data["event"]), str(task.data["action"])))
    return await route(task, dict(task.data["data"]), ctx)


async def _on_head_moved(task: Task, data: dict[str, Any], _ctx: Context) -> list[Task]:
    return [Task("report", task.repo, key=f"moved-{task.key}", pull=int(data["pull"]))]


async def _on_closed(_task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """A closed pull request wants no run any more."""
    await wishes.forget_all(int(data["pull"]), ctx)
    return []


DELIVERIES: Mapping[tuple[str, str], OnDelivery] = {
    ("workflow_job", "completed"): failures.on_job_completed,
    ("check_run", "completed"): failures.on_job_completed,
    ("workflow_run", "completed"): failures.on_run_completed,
    ("workflow_run", "requested"): reporting.on_run_requested,
    ("pull_request", "labeled"): labels.on_label,
    ("pull_request", "unlabeled"): labels.on_label,
    ("pull_request", "synchronize"): _on_head_moved,
    ("pull_request", "closed"): _on_closed,
    ("issue_comment", "created"): slash.on_comment,
    ("issue_comment", "edited"): slash.on_comment,
    ("pull_request_review", "submitted"): slash.on_comment,
    ("pull_request_review", "edited"): slash.on_comment,
    ("pull_request_review_comment", "created"): slash.on_comment,
    ("pull_request_review_comment", "edited"): slash.on_comment,
    ("check_run", "requested_action"): buttons.on_button,
    ("check_run", "rerequested"): buttons.on_button,
    ("check_suite", "rerequested"): buttons.on_button,
}

#: "delivery" comes first for each webhook; the others follow from it.
TASKS: Mapping[str, Work] = {
    "delivery": _delivery,
    "diagnose": failures.diagnose,
    "report": reporting.report,
    "labels": labels.obey,
    "wish": labels.grant,
    "rerun-wish": granting.grant,
    "retry": retry.retry,
    "button": buttons.press,
    "command": slash.answer,
    "vet": reruns.vet,
    "rescan": rescan.rescan,
}

#: What is said when a task was given up; nobody waits for a word about the others.
APOLOGIES: Mapping[str, Apology] = {
    "delivery": _apologize_for_delivery,
    "diagnose": failures.apologize_for,
    "report": reporting.apologize_for,
    "labels": labels.apologize_for,
    "wish": labels.apologize_for,
    "rerun-wish": granting.apologize_for,
    "button": buttons.apologize_for,
    "command": slash.apologize_for,
    "vet": reruns.apologize_for,
}
