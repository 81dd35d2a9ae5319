"""What is done about a task, as durable steps: carry it out, then enqueue what follows from it.

Short on purpose: nothing here waits for hours, a wait is a task with a delay. The engine knows the functions by
their explicit names, which never change. Code outside a step runs again after a crash: no clock, no I/O there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import structlog
from dbos import DBOS, PortableWorkflowError, SetEnqueueOptions, SetWorkflowID, WorkflowIDReusePolicy

from bot.engine.documents import dump_task, later, load_task, place, task_id
from bot.store.watch import AWAY
from handlers.context import RateLimitedError, RefusedError, Task

log = structlog.get_logger()

#: Tries of one task in one process, 1 s and 4 s apart, before it counts as failed.
TRIES = 3
#: How long work waits that met a database that was away, in seconds.
AWAY_WAIT_S = 15.0
#: Work that has to wait again waits twice as long, up to so many seconds: an outage of hours costs a few tries each.
LONGEST_PAUSE_S = 600.0
#: A day of the longest pauses; beyond it the work is stale.
MAX_PUT_OFF = 150
#: Starts of one workflow after crashes: a task that kills the process does not kill it for ever.
MAX_RECOVERIES = 20

#: The engine knows the function by it for ever.
WORKFLOW = "task"
#: Work of the engine's own: to tell whoever waits for a task that it failed. It waits for GitHub as all work does.
APOLOGY = "apology"

Perform = Callable[[Task], Awaitable[Sequence[Task]]]
#: Tells the reader that a task failed for good.
Apologize = Callable[[Task], Awaitable[None]]
#: (task, outcome, seconds)
Observe = Callable[[Task, str, float], None]


class Outcome(TypedDict):
    """The small result of the step: the tasks that follow, and how long GitHub asked us to wait (None: it is done)."""

    follow_ups: list[str]
    wait_s: float | None


class TaskFailedError(Exception):
    """A task failed in every try; it is told once, in this workflow's row and in the log."""


@dataclass
class Worker:
    """What the running engine does with tasks. dbos is one per process, and so is this."""

    perform: Perform
    apologize: Apologize
    observe: Observe
    closing: bool = False
    running: set[asyncio.Task[Any]] = field(default_factory=set)


_workers: list[Worker] = []


def install(worker: Worker) -> None:
    """Make `worker` the one that carries out tasks from now on."""
    _workers[:] = [worker]


@DBOS.step(name="perform", retries_allowed=True, max_attempts=TRIES, interval_seconds=1.0, backoff_rate=4.0)
async def perform_step(document: str) -> Outcome:
    """Carry out a task. May run twice: its effects are found again by their markers."""
    worker, task = _workers[0], load_task(document)
    loop = asyncio.get_running_loop()
    started = loop.time()
    outcome = "failed"
    try:
        follow_ups = await _perform(worker, task)
        outcome = "done"
        return {"follow_ups": [dump_task(one) for one in follow_ups], "wait_s": None}
    except RateLimitedError as limit:
        outcome = "put_off"
        return {"follow_ups": [], "wait_s": limit.after_s}
    except RefusedError as refusal:
        # GitHub's no is final (the repository is gone, the permission was taken away): trying again only annoys it.
        outcome = "refused"
        log.warning(
            "task.refused",
            task=task.name,
            key=task.key,
            repo=task.repo.full_name,
            status=refusal.status,
            why=str(refusal),
        )
        return {"follow_ups": [], "wait_s": None}
    except AWAY:
        # It is told by bot/store/watch.py; three tries within five seconds would all meet the same outage.
        outcome = "put_off"
        return {"follow_ups": [], "wait_s": AWAY_WAIT_S}
    except Exception:
        log.exception("task.failed_once", task=task.name, key=task.key, repo=task.repo.full_name)
        raise
    finally:
        worker.observe(task, outcome, loop.time() - started)


async def _perform(worker: Worker, task: Task) -> Sequence[Task]:
    if task.name != APOLOGY:
        return await worker.perform(task)
    await worker.apologize(load_task(str(task.data["of"])))
    return []


@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MAX_RECOVERIES)
async def task_workflow(document: str, put_off: int) -> None:
    """Carry out one task and enqueue what follows from it."""
    worker = _workers[0]
    this = asyncio.current_task()
    if this is not None:
        worker.running.add(this)
        this.add_done_callback(worker.running.discard)
    try:
        await _carry_out(worker, document, put_off)
    except AWAY as error:
        # dbos waits for the end of most outages, but not of each. An error would end the row for good; so it stays as
        # it is, without its coroutine, and the rescuer takes it up.
        log.info("task.interrupted", why=type(error).__name__)
        raise asyncio.CancelledError from error
    except TaskFailedError:
        raise
    except Exception as error:
        if not worker.closing:
            # It was done, but what follows from it cannot be stored; without a word the row would just end here.
            log.exception("task.not_followed", document=document[:200])
            await give_up(load_task(document), why=repr(error))
        raise


async def _carry_out(worker: Worker, document: str, put_off: int) -> None:
    task = load_task(document)
    try:
        outcome = await perform_step(document)
    except Exception as error:
        if worker.closing:
            raise  # the row stays as it is, and the next start takes it up
        if not _is_outage(error):
            await give_up(task, why=str(error))
            raise TaskFailedError(f"{task.name} {task.key} of {task.repo.full_name}: {error}") from error
        outcome = {"follow_ups": [], "wait_s": AWAY_WAIT_S}
    if outcome["wait_s"] is not None:
        await _put_off(task, put_off + 1, outcome["wait_s"])
    for one in outcome["follow_ups"]:
        await enqueue(load_task(one))


def _is_outage(error: Exception) -> bool:
    """Say whether only the database failed, while dbos stored what came of a step; it may keep that as the outcome."""
    kept_as = error.name if isinstance(error, PortableWorkflowError) else ""
    return isinstance(error, AWAY) or kept_as in {kind.__name__ for kind in AWAY}


async def give_up(task: Task, *, why: str) -> None:
    """Say that a task failed for good: in the log, in a figure and, as work of its own, to whoever waits for it."""
    _workers[0].observe(task, "gave_up", 0.0)
    log.error("task.gave_up", task=task.name, key=task.key, repo=task.repo.full_name, why=why)
    if task.name != APOLOGY:
        data = {"of": dump_task(task)}
        await enqueue(Task(APOLOGY, task.repo, key=f"{task.name}-{task.key}", data=data, pull=task.pull))


async def _put_off(task: Task, times: int, wait_s: float) -> None:
    if times > MAX_PUT_OFF:
        why = f"put off {MAX_PUT_OFF} times"
        await give_up(task, why=why)
        raise TaskFailedError(f"{task.name} {task.key} of {task.repo.full_name}: {why}")
    await enqueue(later(task, after_s=pause_s(wait_s, times)), put_off=times)


def pause_s(asked_s: float, times: int) -> float:
    """Return how long work waits that is put off for the `times`-th time, in seconds: never less than was asked for."""
    return max(asked_s, min(asked_s * 2.0 ** (times - 1), LONGEST_PAUSE_S))


async def enqueue(task: Task, *, put_off: int = 0, only_new: bool = False) -> None:
    """Store a task durably; one with the same id that is there already stays as it is.

    Raises:
        dbos.error.DBOSWorkflowIDInUseError: with `only_new`, if it is there already.
    """
    spot = place(task)
    options = SetEnqueueOptions(queue_partition_key=spot.partition, delay_seconds=task.delay_s or None)
    policy: WorkflowIDReusePolicy | None = "reject" if only_new else None
    with SetWorkflowID(task_id(task, put_off=put_off), workflow_id_reuse_policy=policy), options:
        await DBOS.enqueue_workflow_async(spot.queue, task_workflow, dump_task(task), put_off)
