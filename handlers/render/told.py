"""Words for what the bot did, waits for or would not do: budgets, wishes, dependents, the log of its deeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from handlers.audit import Entry
from handlers.budgets import Spent
from handlers.context import Run, Task
from handlers.dependents import Dependents

from .replies import run_link
from .safe_text import code, commit, count, prose


def budget(spent: Spent) -> str:
    """Say whose budget does not reach, and what can be done."""
    most, whose = spent.account.most, prose(spent.account.whose)
    return (
        f"Not started: it would run {count(spent.asked, 'GPU job')}, and of the {most} a day that {whose} there are "
        f"{spent.left} left. The count starts again at 00:00 UTC; the limits are in {code('.github/mlm.yml')}, "
        "which people with write access can change."
    )


def again(found: Dependents) -> str:
    """`, with 12 dependent jobs (12 on GPUs) and the gates`, "" if nothing depends on it."""
    gpus = f" ({found.gpu_jobs} on GPUs)" if found.gpu_jobs else ""
    parts = [f"{count(found.jobs, 'dependent job')}{gpus}"] if found.jobs else []
    parts += ["the gates"] if found.gates else []
    with_them = f", with {' and '.join(parts)}" if parts else ""
    return with_them + ("; the jobs that were skipped follow if it passes" if found.more else "")


def waits(run: Run, what: str) -> str:
    """Say that a re-run is remembered."""
    return (
        f"Wish noted: {what}. {run_link(run)} is in progress, and GitHub refuses a re-run until it is done. "
        f"I do it then, and say so here. To stop the run and not wait: the same line with {code('--now')}."
    )


def stopping(run: Run, what: str) -> str:
    """Say that a run is stopped to be started again."""
    return f"Cancelling {run_link(run)}; once it has stopped: {what}. I say so here."


WAITS_FOR_GITHUB = (
    "GitHub does not let me do this now: it does not answer, or asks me to wait. I go on trying by myself for a day, "
    "and say here what came of it."
)


def sorry(task: Task, *, done: str, again: str, what: str = "do this") -> str:
    """Say that a fault of the bot ended a piece of work, what became of it, and how to have it tried again."""
    name = code(f"{task.name} {task.key}", limit=200)
    sentences = (
        f"I could not {what} because of a fault of mine, and have given it up.",
        done,
        again,
        f"If that fails too, tell the operator of this bot {name}: the log knows it by that name.",
    )
    return " ".join(sentence for sentence in sentences if sentence)


def start_unknown(run: Run, attempt: int, *, how: str) -> str:
    """Say that a re-run may have begun or not, and how to ask once more."""
    return (
        f"I do not know whether {run_link(run, attempt=attempt)} was started: GitHub broke off each time that I asked "
        f"for it, and shows attempt {attempt - 1} as the newest. I do not ask again by myself, so that nothing runs "
        f"twice. If attempt {attempt} has not appeared in a minute: {how}."
    )


def outdated(head_sha: str) -> str:
    """Say that a wish was given up because the commit is another one."""
    return f"Not started: the head is {commit(head_sha)} now, another commit than the one that you asked for."


def other_sha(wanted: str, head_sha: str) -> str:
    """Say that the commit that was named is not the head."""
    return (
        f"Not started: you named {code(wanted)}, but the head of this pull request is {commit(head_sha)}. "
        f"For that one: {code(f'--sha {head_sha[:12]}')}"
    )


def age(span: timedelta) -> str:
    """`3 h 20 min`."""
    minutes = max(0, int(span.total_seconds() // 60))
    hours, rest = divmod(minutes, 60)
    days, hours_left = divmod(hours, 24)
    if days:
        return f"{days} d {hours_left} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def deeds(entries: Sequence[Entry]) -> str:
    """The last deed in words, the earlier ones folded."""
    if not entries:
        return "I have done nothing on this pull request yet, so there is nothing to explain."
    *earlier, last = entries
    text = _deed(last)
    if earlier:
        lines = "\n".join(f"- {_deed(entry)}" for entry in reversed(earlier[-10:]))
        text += f"\n\n<details><summary>Before that</summary>\n\n{lines}\n\n</details>"
    return text


def _deed(entry: Entry) -> str:
    deed = entry.deed
    done = "" if deed.done else "not done: "
    parts = [f"{entry.at[:16].replace('T', ' ')} UTC, {done}**{prose(deed.what)}**, asked by {code(deed.by)}"]
    if deed.run_id is not None:
        parts.append(f"run {deed.run_id}, attempt {deed.attempt}")
    if deed.head_sha:
        parts.append(f"head {commit(deed.head_sha)}")
    if deed.comment_id is not None:
        parts.append(f"comment {deed.comment_id}")
    return f"{', '.join(parts)}. Why: {prose(deed.why)}"
