"""`mlm serve` as the next release may be: with a column more, and a kind of task that is new. A program."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from bot.cli.main import main
from bot.store import tables
from handlers import slash, tasks
from handlers.context import Context, Task

#: What the next release calls its answers to comments.
ANSWER = "answer"


def upgrade() -> None:
    """Change what a release changes."""
    tables.MIGRATIONS[tables.SCHEMA_VERSION] = ("ALTER TABLE mlm_memory ADD COLUMN note TEXT",)
    tables.SCHEMA_VERSION += 1
    old = tasks.DELIVERIES["issue_comment", "created"]

    async def on_comment(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
        return [replace(one, name=ANSWER) for one in await old(task, data, ctx)]

    tasks.DELIVERIES = {**tasks.DELIVERIES, ("issue_comment", "created"): on_comment}
    tasks.TASKS = {**tasks.TASKS, ANSWER: slash.answer}


if __name__ == "__main__":
    upgrade()
    sys.exit(main(["serve"]))
