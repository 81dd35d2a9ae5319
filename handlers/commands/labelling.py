"""`/mlm run …`, `label`, `unlabel`: set the labels that CI reads, then make it read them."""

from __future__ import annotations

import difflib
from dataclasses import replace

from handlers.audit import Deed, record
from handlers.context import Context, Pull, RefusedError
from handlers.labels import Done, act, look, note_labels
from handlers.plans import plan_for
from handlers.render import replies
from handlers.render.safe_text import code

from .asking import Ask, Final, Outcome
from .grammar import Plain

REACTION: dict[str, Final] = {"started": "rocket", "noted": "rocket", "nothing": "+1", "refused": "confused"}


async def run(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Add the label of each word, and make CI obey."""
    known = {word: label for word, label in ctx.config.run_words.items() if label in ctx.config.ci_labels}
    words = [word.casefold() for typed in command.words for word in typed.split(",") if word]
    if unknown := next((word for word in words if word not in known), None):
        return _which(unknown, known, prefix="/mlm run")
    if not words:
        return Outcome(f"Run what? {', '.join(code(f'/mlm run {word}') for word in known)}", "confused")
    return await _set(_pull(ask), [known[word] for word in words], command, ask, ctx)


async def label(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Add one of the labels that CI reads, and make CI obey."""
    names = _names(command, ctx)
    return names if isinstance(names, Outcome) else await _set(_pull(ask), names, command, ask, ctx)


async def unlabel(command: Plain, ask: Ask, ctx: Context) -> Outcome:
    """Take one of the labels that CI reads off. Nothing is started: a run in progress goes on as it is."""
    names, pull = _names(command, ctx), _pull(ask)
    if isinstance(names, Outcome):
        return names
    there = [name for name in names if name in pull.labels]
    if not there:
        return Outcome(f"{', '.join(code(name) for name in names)} is not on this pull request.", "confused")
    if command.dry_run:
        return Outcome(f"Dry run: I would take {', '.join(code(name) for name in there)} off.")
    for name in there:
        await ctx.github.remove_label(pull.number, name)
    left = replace(pull, labels=tuple(label for label in pull.labels if label not in there))
    await note_labels(left, ctx)
    await _note(pull, ask, f"label {', '.join(there)} taken off", "", ctx)
    plan = replies.plan(plan_for(left.labels, ctx.config), ctx.config)
    return Outcome(f"Taken off: {', '.join(code(name) for name in there)}. The labels now ask for: {plan}.")


async def _set(pull: Pull, names: list[str], command: Plain, ask: Ask, ctx: Context) -> Outcome:
    new = [name for name in names if name not in pull.labels]
    labelled = replace(pull, labels=(*pull.labels, *new))
    wanted = plan_for(labelled.labels, ctx.config)
    if new and not command.dry_run:
        try:
            await ctx.github.add_labels(pull.number, new)
        except RefusedError as error:
            return Outcome(replies.github_said(error.status, error.message), "confused")
        await note_labels(labelled, ctx)
        await _note(pull, ask, f"label {', '.join(new)} added", f"asked for by /mlm {command.verb}", ctx)
    found = await look(labelled, wanted, by=ask.by, ctx=ctx)
    done = found if isinstance(found, Done) else await act(found, added=True, ctx=ctx, dry_run=command.dry_run)
    if done is None:
        raise RuntimeError("labels that were added lead to an answer")
    if command.dry_run:
        adding = f"I would add {', '.join(code(name) for name in new)}. " if new else ""
        return Outcome(f"Dry run: {adding}The labels would ask for: {done.text}.{replies.outranked(wanted)}")
    added = f"Added {', '.join(code(name) for name in new)}. " if new else ""
    return Outcome(added + done.text, REACTION[done.step])


async def _note(pull: Pull, ask: Ask, what: str, why: str, ctx: Context) -> None:
    deed = Deed(what, ask.by, why or "asked for by command", head_sha=pull.head_sha, comment_id=ask.comment_id)
    await record(pull.number, deed, ctx)


def _names(command: Plain, ctx: Context) -> list[str] | Outcome:
    """Read label names, which may hold blanks: all words are one name, unless each alone is one."""
    known = {name.casefold(): name for name in sorted(ctx.config.ci_labels)}
    if not command.words:
        prefix = f"/mlm {command.verb}"
        return Outcome(f"Which label? {', '.join(code(f'{prefix} {name}') for name in known.values())}", "confused")
    whole = " ".join(command.words)
    wanted = [whole] if whole.casefold() in known else list(command.words)
    if all(name.casefold() in known for name in wanted):
        return [known[name.casefold()] for name in wanted]
    return _which(whole, {name: name for name in known.values()}, prefix=f"/mlm {command.verb}")


def _which(word: str, known: dict[str, str], *, prefix: str) -> Outcome:
    lower = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), lower, n=3, cutoff=0.4)
    names = [lower[name] for name in near] or list(known)
    hints = ", ".join(code(f"{prefix} {name}") for name in names)
    return Outcome(f"CI here knows no {code(word)}. Did you mean {hints}?", "confused")


def _pull(ask: Ask) -> Pull:
    if ask.pull is None:
        raise ValueError("labels need a pull request")
    return ask.pull
