"""A comment holds commands: say at once that they were seen, carry out each once, and answer in one reply."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

import structlog

from . import wishes
from .commands.asking import Ask, Final, Outcome
from .commands.grammar import Command, Parsed, Plain, Rerun, Unclear, parse_line
from .commands.mending import mended
from .commands.registry import VERBS
from .commands.rerun import order_key
from .context import Context, Pull, RateLimitedError, RefusedError, Repo, Task, UserError
from .permissions import Verdict, may, spend_author_budget
from .render import told
from .render.replies import run_link
from .render.safe_text import code, prose
from .reruns import begun_under
from .wishes import Wish

log = structlog.get_logger()

#: Of several commands the one that most needs attention decides the reaction.
WORST_FIRST: tuple[Final, ...] = ("-1", "confused", "rocket", "+1")


async def on_comment(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """Show 👀 before any work if the person may do what they ask for, then queue the work behind the pull request."""
    people = _people(data)
    unheard = [login for login in data["bots"] if login.casefold() not in {bot.casefold() for bot in ctx.config.bots}]
    if unheard:
        log.info("command.from_bot", bots=unheard)
        return []
    pull = await ctx.github.pull(int(data["pull"])) if data["on_pull"] else None
    for line in data["lines"]:
        parsed = parse_line(line)
        if not isinstance(parsed, Unclear) and (await may(parsed.right, people, pull, ctx)).allowed:
            await _react(data, "eyes", ctx)
            break
    return [Task("command", task.repo, key=task.key, data=data, pull=int(data["pull"]))]


def _people(data: dict[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(data["author"]), str(data["editor"]))))


async def answer(task: Task, ctx: Context) -> list[Task]:
    """Carry out each line that was not carried out before, and keep the one reply to this comment true."""
    data = task.data
    comment_id, number = int(data["comment_id"]), int(data["pull"])
    pull = await ctx.github.pull(number) if data["on_pull"] else None
    outcomes: list[tuple[str, Outcome]] = []
    for line in dict.fromkeys(data["lines"]):
        key = _key(comment_id, line)
        at = datetime.fromisoformat(data["at"])
        ask = Ask(key, _people(data), pull, at, task, line=line, comment_id=comment_id)
        try:
            outcome = await _once(line, ask, said_before=line in data["old_lines"], ctx=ctx)
        except RateLimitedError:
            await _say_that_it_waits(line, outcomes, task, ctx)
            raise
        if outcome is not None:
            outcomes.append((line, outcome))
    if outcomes:
        await _reply(data, outcomes, number, ctx)
    return [follow_up for _, outcome in outcomes for follow_up in outcome.tasks]


async def _say_that_it_waits(line: str, outcomes: Sequence[tuple[str, Outcome]], task: Task, ctx: Context) -> None:
    """Say that GitHub keeps us from it, where that can be said; the answer replaces it."""
    text = reply_text([*outcomes, (line, Outcome(told.WAITS_FOR_GITHUB))], dropped=int(task.data["dropped"]))
    try:
        await ctx.comments.upsert(int(task.data["pull"]), key=f"reply-{task.data['comment_id']}", body=text)
    except (RateLimitedError, RefusedError) as error:
        log.info("command.unanswered", comment_id=task.data["comment_id"], why=str(error))


def _key(comment_id: int, line: str) -> str:
    """Name this line of this comment, for good."""
    return f"{comment_id}-{hashlib.sha256(line.encode()).hexdigest()[:12]}"


async def _stored(key: str, repo: Repo, ctx: Context) -> Outcome | None:
    """Return the answer that was given to a line, None if it has none yet."""
    stored = await ctx.store.recall(f"said-{key}")
    if stored is None:
        return None
    follow_ups = tuple(Task(repo=repo, **follow_up) for follow_up in stored["tasks"])
    return Outcome(str(stored["text"]), stored["reaction"], follow_ups)


async def _once(line: str, ask: Ask, *, said_before: bool, ctx: Context) -> Outcome | None:
    """Return the stored answer of a line, or carry it out; None for a line that stood there before an edit."""
    stored = await _stored(ask.key, ask.task.repo, ctx)
    if stored is not None or said_before:
        return stored
    parsed = parse_line(line)
    outcome = await execute(parsed, ask, ctx)
    await ctx.store.remember(f"said-{ask.key}", _record(outcome))
    log.info(
        "command.done",
        by=ask.by,
        line=line,
        reaction=outcome.reaction,
        head_sha=ask.pull.head_sha if ask.pull else None,
    )
    return outcome


async def execute_again(wish: Wish, pull: Pull, task: Task, ctx: Context) -> Outcome:
    """Carry out a line that had to wait; everything is checked anew, for the same people."""
    data = wish.data
    at, task = datetime.fromisoformat(data["at"]), replace(task, data=data)
    comment_id = int(data["comment_id"])
    ask = Ask(again_key(wish), _people(data), pull, at, task, line=wish.line, comment_id=comment_id)
    outcome = await execute(parse_line(wish.line), ask, ctx)
    if outcome.waits:  # it was stored under the key of this second try
        await wishes.remember(pull.number, wish, ctx)
    return outcome


def again_key(wish: Wish) -> str:
    """Name the second try of a line that had to wait."""
    return f"{wish.key}-again"


async def replace_answer(key: str, data: dict[str, Any], outcome: Outcome, task: Task, ctx: Context) -> list[Task]:
    """Let the reply to a comment say what became of one of its lines in the end."""
    await ctx.store.remember(f"said-{key}", _record(outcome))
    return await answer(replace(task, data=data), ctx)


def _record(outcome: Outcome) -> dict[str, Any]:
    """Keep the follow-ups too: they are asked for again if we crash before the engine has them."""
    tasks = [
        {"name": task.name, "key": task.key, "data": task.data, "pull": task.pull, "delay_s": task.delay_s}
        for task in outcome.tasks
    ]
    return {"text": outcome.text, "reaction": outcome.reaction, "tasks": tasks}


async def execute(parsed: Parsed, ask: Ask, ctx: Context) -> Outcome:
    """Check the right and carry out one command; what goes wrong is an answer too."""
    if isinstance(parsed, Unclear):
        return await _unclear(parsed, ask, ctx)
    verb = VERBS[_name(parsed)]
    if verb.needs_pull and ask.pull is None:
        return Outcome(f"{code(verb.usage[0])} works on pull requests only.", "confused")
    verdict = await may(parsed.right, ask.people, ask.pull, ctx)
    if not verdict.allowed:
        return await _denied(parsed, verdict, ask, ctx)
    if verb.mutates and ask.pull is not None and ask.pull.state != "open":
        return Outcome("This pull request is closed, so I change nothing here. Reopen it first.", "confused")
    try:
        return await _run(parsed, verdict, ask, ctx)
    except UserError as error:
        return Outcome(str(error), "confused")
    except RefusedError as error:
        return Outcome(f"GitHub refused ({error.status}): {prose(error.message)}", "confused")


def _name(parsed: Command) -> str:
    return parsed.verb if isinstance(parsed, Plain) else "rerun" if isinstance(parsed, Rerun) else "help"


async def _run(parsed: Command, verdict: Verdict, ask: Ask, ctx: Context) -> Outcome:
    """Run the verb; the author of a pull request pays from a daily budget, and gets it back if nothing was started."""
    verb = VERBS[_name(parsed)]
    pays = isinstance(parsed, Rerun) and not parsed.dry_run and verdict.grant == "author" and ask.pull is not None
    if not pays or ask.pull is None:
        outcome: Outcome = await verb.run(parsed, ask, ctx)
        return outcome
    receipt = await spend_author_budget(ask.pull, verdict.login, spender=ask.key, ctx=ctx)
    if receipt is None:
        most = ctx.config.limits.author_reruns_per_day
        return Outcome(f"You have started {most} re-runs here today. Somebody with write access can start more.", "-1")
    outcome = await verb.run(parsed, ask, ctx)
    if outcome.reaction != "rocket" or outcome.waits:
        await ctx.store.forget(receipt)
    return outcome


async def _unclear(parsed: Unclear, ask: Ask, ctx: Context) -> Outcome:
    """Suggest commands whose every word is known here; nothing is executed."""
    nearest = [await mended(line, ask.pull, ctx) for line in parsed.nearest]
    hints = ", ".join(code(line, limit=300) for line in nearest if line is not None)
    return Outcome(prose(parsed.why) + (f" Did you mean {hints}?" if hints else ""), "confused")


async def _denied(parsed: Command, verdict: Verdict, ask: Ask, ctx: Context) -> Outcome:
    """Say once a day and person that something is not allowed; after that the reaction alone says it."""
    number = ask.pull.number if ask.pull else 0
    key = f"denied-{number}-{verdict.login}-{ctx.now().date().isoformat()}"
    first = await ctx.store.once(key, {"ask": ask.key})
    if first["ask"] != ask.key:
        return Outcome("", "-1")
    who = _who(ctx.config.commands.get(parsed.right, ()))
    return Outcome(
        f"Not allowed for {code(verdict.login)}: {code('/mlm ' + parsed.right.replace('-', ' '))} is for {who}. "
        "One of them can give it for you.",
        "-1",
    )


def _who(grants: Sequence[str]) -> str:
    words = {"trustees": "trusted users", "author": "the author of the pull request", "anyone": "everybody"}
    roles = [f"people with the {grant.removeprefix('role:')} role" for grant in grants if grant.startswith("role:")]
    teams = [f"members of {code(grant.removeprefix('team:'))}" for grant in grants if grant.startswith("team:")]
    named = [words[grant] for grant in grants if grant in words]
    *most, last = [*roles, *teams, *named] or ["nobody"]
    return f"{', '.join(most)} or {last}" if most else last


async def _reply(data: dict[str, Any], outcomes: Sequence[tuple[str, Outcome]], number: int, ctx: Context) -> None:
    comment_id = int(data["comment_id"])
    body = reply_text(outcomes, dropped=int(data["dropped"]))
    if body:
        try:
            await ctx.comments.upsert(number, key=f"reply-{comment_id}", body=body)
        except RefusedError as error:
            log.warning("command.unanswered", comment_id=comment_id, status=error.status, why=error.message)
    final = next(mark for mark in WORST_FIRST if any(outcome.reaction == mark for _, outcome in outcomes))
    for stale in ("eyes", *(mark for mark in get_args(Final) if mark != final)):
        await _unreact(data, stale, ctx)
    await _react(data, final, ctx)


def reply_text(outcomes: Sequence[tuple[str, Outcome]], *, dropped: int) -> str:
    """One command: its answer. Several: each with what was read. "" if there is nothing to say."""
    spoken = [(line, outcome) for line, outcome in outcomes if outcome.text]
    if len(spoken) == 1 and len(outcomes) == 1 and not dropped:
        return spoken[0][1].text + "\n"
    parts = [f"{code('/mlm ' + line, limit=300)}\n\n{outcome.text}" for line, outcome in spoken]
    if dropped:
        parts.append(f"{dropped} more commands were not read: a comment may hold five.")
    return "\n\n".join(parts) + "\n" if parts else ""


async def _react(data: dict[str, Any], mark: Any, ctx: Context) -> None:
    """A reaction is a courtesy: a comment that was deleted or locked meanwhile stops nothing."""
    try:
        await ctx.github.react(int(data["comment_id"]), mark, place=data["place"])
    except RefusedError as error:
        log.info("reaction.refused", comment_id=data["comment_id"], mark=mark, status=error.status)


async def _unreact(data: dict[str, Any], mark: Any, ctx: Context) -> None:
    try:
        await ctx.github.unreact(int(data["comment_id"]), mark, place=data["place"])
    except RefusedError as error:
        log.info("reaction.kept", comment_id=data["comment_id"], mark=mark, status=error.status)


async def apologize_for(task: Task, ctx: Context) -> None:
    """Answer the lines that have no answer yet: they failed for a reason that lies with the bot."""
    data = task.data
    outcomes: list[tuple[str, Outcome]] = []
    for line in dict.fromkeys(data["lines"]):
        key = _key(int(data["comment_id"]), line)
        answered = await _stored(key, task.repo, ctx)
        if answered is None and line not in data["old_lines"]:
            answered = await sorry(line, key, task, ctx)
        if answered is not None:
            outcomes.append((line, answered))
    if outcomes:
        await _reply(data, outcomes, int(data["pull"]), ctx)


async def sorry(line: str, key: str, task: Task, ctx: Context) -> Outcome:
    """Say of one line that it failed, what was done all the same, and what to type."""
    parsed = parse_line(line)
    begun = await begun_under(order_key(key), ctx) if isinstance(parsed, Rerun) else None
    if begun is not None:
        done = f"{run_link(begun)} was started, though."
    elif isinstance(parsed, Plain) and VERBS[parsed.verb].mutates:
        done = f"Part of it may be done: {code('/mlm why')} lists what I did here."
    else:
        done = "Nothing was started or changed."
    again = f"Comment {code(f'/mlm {line}', limit=300)} to have it tried again."
    return Outcome(told.sorry(task, done=done, again=again), "confused")
