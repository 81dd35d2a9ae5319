"""A command with all that it rests on, and what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from handlers.context import Pull, Task

Final = Literal["+1", "-1", "confused", "rocket"]


@dataclass(frozen=True)
class Ask:
    """Who asked, where and when. `key` names this line of this comment, for good."""

    key: str
    people: tuple[str, ...]  # the author first, then the editor
    pull: Pull | None  # None: a plain issue
    at: datetime
    task: Task
    line: str = ""  # what was typed, without its `/mlm`
    comment_id: int | None = None  # None: a button was pressed

    @property
    def by(self) -> str:
        """Who is answerable for it."""
        return self.people[-1]


@dataclass(frozen=True)
class Outcome:
    """The answer to one command, as Markdown, and the reaction that sums it up."""

    text: str
    reaction: Final = "+1"
    tasks: tuple[Task, ...] = field(default=())
    waits: bool = False  # it is done once a run in progress has ended


@dataclass(frozen=True)
class Verb:
    """One command of the registry: help, docs and the grammar's suggestions are made from it."""

    name: str
    usage: tuple[str, ...]
    summary: str
    run: Callable[..., Awaitable[Outcome]]
    needs_pull: bool = True
    mutates: bool = False
    apart: Mapping[str, str] = field(default_factory=dict)  # lines of `usage` that need another right than `name`
