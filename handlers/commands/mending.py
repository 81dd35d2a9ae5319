"""A suggested command whose selector is a typo too: correct both, so that the line can be copied."""

from __future__ import annotations

import difflib
import shlex

from handlers.context import Context, Pull
from handlers.runs import candidates, main_run, runs_of_head
from handlers.selection import Candidate, Selected, nearest, select

from .choosing import of_kind, quoted
from .grammar import Plain, Rerun, parse_line

PREFIX = "/mlm "


async def mended(line: str, pull: Pull | None, ctx: Context) -> str:
    """Return the suggestion with each selector that means nothing here replaced by the nearest that does."""
    parsed = parse_line(line.removeprefix(PREFIX))
    if isinstance(parsed, Plain) and parsed.verb == "run":
        words = [_near(word, list(ctx.config.run_words)) for word in parsed.words]
        return PREFIX + " ".join(["run", *words])
    if not isinstance(parsed, Rerun) or not parsed.selectors or pull is None:
        return line
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is None:
        return line
    pool = of_kind(parsed.target, candidates(await ctx.github.jobs(run.id), ctx.config.jobs))
    target = [] if parsed.target == "any" else [parsed.target]
    words = [_mend(word, pool) for word in parsed.selectors]
    return PREFIX + " ".join(["rerun", *target, ",".join(words)])


def _mend(word: str, pool: list[Candidate]) -> str:
    if isinstance(select(pool, [word]), Selected):
        return quoted(word)
    near = nearest(pool, word)
    return quoted(near[0]) if near else shlex.quote(word)


def _near(word: str, known: list[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1)
    return found[0] if found else word
