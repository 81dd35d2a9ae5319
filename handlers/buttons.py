"""Buttons of our check run: whoever presses one is checked like somebody who comments."""

from __future__ import annotations

from typing import Any

import structlog

from . import slash
from .check_view import BUTTONS
from .commands.asking import Ask
from .commands.grammar import parse_line
from .context import Context, RefusedError, Task
from .render.safe_text import code
from .runs import pulls_of_run

log = structlog.get_logger()

#: The command that each button stands for.
LINES = {"rerun-failed": "rerun failed", "analyze": "analyze", "mute": "mute"}


async def on_button(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """Find the pull requests that the check run is about, and queue the work behind each."""
    if data["button"] not in LINES:
        return []
    numbers: dict[int, None] = {}
    for run in await ctx.github.runs(head_sha=data["head_sha"]):
        numbers |= {pull.number: None for pull in await pulls_of_run(run, ctx)}
    return [Task("button", task.repo, key=f"{task.key}-{number}", data=data, pull=number) for number in numbers]


async def press(task: Task, ctx: Context) -> list[Task]:
    """Carry out what the button stands for, and answer in a comment that the next press edits."""
    line, by = LINES[task.data["button"]], str(task.data["by"])
    pull = await ctx.github.pull(task.pull or 0)
    ask = Ask(f"button-{task.key}", (by,), pull, ctx.now(), task, line=line)
    outcome = await slash.execute(parse_line(line), ask, ctx)
    label = next(button.label for button in BUTTONS if button.identifier == task.data["button"])
    if outcome.text:
        try:
            text = f"{code(by)} pressed “{label}”. {outcome.text}\n"
            await ctx.comments.upsert(pull.number, key=f"button-{task.data['button']}", body=text)
        except RefusedError as error:
            log.warning("button.unanswered", pull=pull.number, status=error.status, why=error.message)
    log.info("button.done", pull=pull.number, by=by, button=task.data["button"], reaction=outcome.reaction)
    return list(outcome.tasks)
