"""`/mlm mute`, `unmute`, `flaky`, `feedback`: what people tell the bot, and it remembers."""

from __future__ import annotations

import re
from typing import Any

import structlog

from analyzers.model import Category
from handlers.audit import Deed, record
from handlers.context import Context, Pull, Task
from handlers.memory import add_flake, mute_job, unmute_job
from handlers.render.safe_text import code
from handlers.runs import candidates, main_run, runs_of_head
from handlers.selection import Unresolved, select

from .asking import Ask, Outcome
from .choosing import unresolved
from .grammar import Plain

log = structlog.get_logger()

ISSUE = re.compile(r"#?(?P<number>[1-9][0-9]{0,8})")
#: A pytest node id, or as much of its end as tells it from others.
TEST = re.compile(r"[A-Za-z0-9_./\[\]:,=+-]{3,300}")
#: Opinions of one pull request that are kept.
OPINIONS = 100


async def mute(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Stop commenting unasked: on the whole pull request, or about one job."""
    pull = _pull(ask)
    if _whole(command):
        await ctx.github.add_labels(pull.number, [ctx.config.mute_label])
        await _note(pull, ask, "mute", "no automatic comments here", ctx)
        return Outcome(
            f"Muted: my report stays as it is, and I comment here only when asked, as the label "
            f"{code(ctx.config.mute_label)} says. To undo it: {code('/mlm unmute')}"
        )
    names = await _jobs(command, pull, ctx)
    if isinstance(names, Outcome):
        return names
    for name in names:
        await mute_job(pull.number, name, ctx)
    await _note(pull, ask, "mute", f"no comments about {', '.join(names)}", ctx)
    return Outcome(f"Muted here: {', '.join(code(name) for name in names)}.", tasks=(_report(ask, pull),))


async def unmute(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Comment again."""
    pull = _pull(ask)
    if _whole(command):
        await ctx.github.remove_label(pull.number, ctx.config.mute_label)
        await unmute_job(pull.number, None, ctx)
        await _note(pull, ask, "unmute", "asked for by command", ctx)
        return Outcome("Unmuted: I comment on failures again.", tasks=(_report(ask, pull),))
    names = await _jobs(command, pull, ctx)
    if isinstance(names, Outcome):
        return names
    for name in names:
        await unmute_job(pull.number, name, ctx)
    await _note(pull, ask, "unmute", f"comments about {', '.join(names)} again", ctx)
    return Outcome(f"Unmuted: {', '.join(code(name) for name in names)}.", tasks=(_report(ask, pull),))


def _whole(command: Plain) -> bool:
    return not command.words or command.words in {("pr",), ("all",)}


def _report(ask: Ask, pull: Pull) -> Task:
    return Task("report", ask.task.repo, key=f"told-{ask.key}", pull=pull.number)


async def _jobs(command: Plain, pull: Pull, ctx: Context) -> list[str] | Outcome:
    words = (
        command.words[1:]
        if command.words[0].casefold() in {"job", "jobs"} and len(command.words) > 1
        else command.words
    )
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    jobs = await ctx.github.jobs(run.id) if run is not None else ()
    found = select(candidates(jobs, ctx.config.jobs), words)
    if isinstance(found, Unresolved):
        return Outcome(unresolved(found, prefix=f"/mlm {command.verb} job"), "confused")
    return [item.name.name for item in found.jobs]


async def flaky(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Record that a test is known to fail now and then, with the issue that says so."""
    pull = _pull(ask)
    test, issue = (*command.words, "", "")[:2]
    found = ISSUE.fullmatch(issue)
    if len(command.words) != 2 or found is None or not TEST.fullmatch(test):
        usage = code("/mlm flaky tests/unit_tests/a/test_b.py::test_c #123")
        return Outcome(f"I need one test and the number of the issue about it: {usage}", "confused")
    await add_flake(test, int(found["number"]), by=ask.by, ctx=ctx)
    await _note(pull, ask, "flaky test recorded", f"{test}, issue {found['number']}", ctx)
    return Outcome(
        f"Recorded: {code(test)} is known to fail now and then (issue {code('#' + found['number'])}). Reports say so "
        "from now on; a failure of it still counts as red.",
        tasks=(_report(ask, pull),),
    )


async def feedback(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Keep an opinion on the analysis: right or wrong, and what it should have been."""
    pull = _pull(ask)
    opinion, category = (*(word.casefold() for word in command.words), "", "")[:2]
    known = {str(name) for name in Category}
    if opinion not in {"right", "wrong"} or len(command.words) > 2 or (category and category not in known):
        categories = ", ".join(code(name) for name in sorted(known))
        usage = f"{code('/mlm feedback right')} or {code('/mlm feedback wrong cuda_oom')}"
        return Outcome(f"Type {usage}; the categories are {categories}.", "confused")
    found = sorted({str(one.diagnosis.category) for one in await ctx.store.findings(head_sha=pull.head_sha)})
    said = {
        "opinion": opinion,
        "category": category,
        "found": found,  # what we had said ourselves
        "by": ask.by,
        "head_sha": pull.head_sha,
        "ask": ask.key,
    }

    def add(stored: dict[str, Any] | None) -> dict[str, Any]:
        before = [one for one in (stored or {}).get("opinions", []) if one["ask"] != ask.key]
        return {"opinions": [*before, said][-OPINIONS:]}

    await ctx.store.change(f"feedback-{pull.number}", add)
    log.info("feedback.given", pull=pull.number, **said)
    return Outcome("", "+1")


async def _note(pull: Pull, ask: Ask, what: str, why: str, ctx: Context) -> None:
    await record(pull.number, Deed(what, ask.by, why, head_sha=pull.head_sha, comment_id=ask.comment_id), ctx)


def _pull(ask: Ask) -> Pull:
    if ask.pull is None:
        raise ValueError("this command needs a pull request")
    return ask.pull
