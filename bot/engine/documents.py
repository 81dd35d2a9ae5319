"""A `Task` as the text that the engine stores, the id it is stored under, and the queue it waits in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from handlers.context import Task

_TASK = TypeAdapter(Task)
#: The database's column for workflow ids is an index key; keys are made from numbers and ids, so this is generous.
MAX_ID = 240
#: Separates the key from the number of times that the work was put off.
PUT_OFF = "~"


class Place(NamedTuple):
    """Where a task waits: a queue, and the partition of it whose tasks are limited together (None: not partitioned)."""

    queue: str
    partition: str | None


#: A repository's deliveries wait for each other, not those of others for them.
ARRIVALS = "arrivals"
JOBS = "jobs"
PULLS = "pulls"
#: The pull requests of one repository stand in so many lines: hundreds at once take no more of everybody's places.
LINES = 4


def dump_task(task: Task) -> str:
    """Return the task as ASCII JSON: text of any kind (a lone surrogate in a payload) survives every database."""
    return json.dumps(_TASK.dump_python(task, mode="json"), ensure_ascii=True, separators=(",", ":"))


def load_task(document: str) -> Task:
    """Return the task of a document.

    Raises:
        pydantic.ValidationError: the document is not one of ours.
    """
    return _TASK.validate_python(json.loads(document))


def stored_task(inputs: Mapping[str, Any] | None) -> Task | None:
    """Return the task of a row as dbos lists it; None if it has none that we can read (another release's, say)."""
    try:
        return load_task(inputs["args"][0]) if inputs else None
    except ValueError:  # pydantic's and json's are such, too
        return None


def task_id(task: Task, *, put_off: int = 0) -> str:
    """Return the id under which the task is known for ever: the same key is never carried out twice.

    Raises:
        ValueError: the key is empty, too long or not ASCII.
    """
    # Pull requests that share a commit get a task each under the same key.
    whose = f"{task.repo.id}" if task.pull is None else f"{task.repo.id}#{task.pull}"
    name = f"{task.name}:{whose}:{task.key}"
    if not task.key or not name.isascii() or len(name) > MAX_ID:
        raise ValueError(f"a task's key must be short ASCII text: {name[:MAX_ID]!r}")
    return f"{name}{PUT_OFF}{put_off}" if put_off else name


def place(task: Task) -> Place:
    """Say where the task waits: one at a time per pull request, a few per repository."""
    if task.pull is not None:
        return Place(PULLS, f"{task.repo.id}#{task.pull % LINES}")
    if task.name == "delivery":
        return Place(ARRIVALS, str(task.repo.id))
    return Place(JOBS, str(task.repo.id))


def later(task: Task, *, after_s: float) -> Task:
    """Return the same task, to be started `after_s` seconds from now."""
    return replace(task, delay_s=max(0.0, after_s))
