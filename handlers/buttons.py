"""Buttons of our check run: whoever presses one is checked like somebody who comments."""

from __future__ import annotations

from typing import Any

import structlog

from . import slash
from .check_view import BUTTONS
from .commands.asking import Ask
from .commands.grammar import parse_line
from .context import Context, Pull, RefusedError, Task
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
    if outcome.text:
        await _answer(task, pull, outcome.text, ctx)
    log.info("button.done", pull=pull.number, by=by, button=task.data["button"], reaction=outcome.reaction)
    return list(outcome.tasks)


async def _answer(task: Task, pull: Pull, text: str, ctx: Context) -> None:
    label = next(button.label for button in BUTTONS if button.identifier == task.data["button"])
    body = f"{code(str(task.data['by']))} pressed “{label}”. {text}\n"
    try:
        await ctx.comments.upsert(pull.number, key=f"button-{task.data['button']}", body=body)
    except RefusedError as error:
        log.warning("button.unanswered", pull=pull.number, status=error.status, why=error.message)


async def apologize_for(task: Task, ctx: Context) -> None:
    """Say that what the button stands for was not done for a reason that lies with the bot."""
    outcome = await slash.sorry(LINES[task.data["button"]], f"button-{task.key}", task, ctx)
    await _answer(task, await ctx.github.pull(task.pull or 0), outcome.text, ctx)
