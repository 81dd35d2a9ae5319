"""A suggested command whose selector is a typo too: correct both, so that the line can be copied."""

from __future__ import annotations

import difflib
from dataclasses import replace

from handlers.context import Context, Pull
from handlers.runs import candidates, main_run, runs_of_head
from handlers.selection import Candidate, Selected, nearest, select

from .choosing import of_kind
from .grammar import Plain, Rerun, parse_line, typed
from .lines import MAX_LINE

PREFIX = "/mlm "
#: Begins what the reader has to fill in.
PLACEHOLDER = "<"


async def mended(line: str, pull: Pull | None, ctx: Context) -> str | None:
    """Return the suggestion with each selector that means nothing here replaced by the nearest that does.

    None if one has no near job: the line would only be declined.
    """
    parsed = parse_line(line.removeprefix(PREFIX))
    if isinstance(parsed, Plain) and parsed.verb == "run":
        near = [_near(word, list(ctx.config.run_words)) for word in parsed.words]
        known = [word for word in near if word is not None]
        options = ["--dry-run"] if parsed.dry_run else []
        return PREFIX + " ".join(["run", *known, *options]) if len(known) == len(near) else None
    if not isinstance(parsed, Rerun) or not parsed.selectors or pull is None or PLACEHOLDER in line:
        return line
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is None:
        return line
    pool = of_kind(parsed.target, candidates(await ctx.github.jobs(run.id), ctx.config.jobs))
    words = [_mend(word, pool) for word in parsed.selectors]
    if any(word is None for word in words):
        return None
    better = typed(replace(parsed, selectors=tuple(word for word in words if word is not None)))
    return PREFIX + better if len(better) <= MAX_LINE else None


def _mend(word: str, pool: list[Candidate]) -> str | None:
    if isinstance(select(pool, [word]), Selected):
        return word
    near = nearest(pool, word)
    return near[0] if near else None


def _near(word: str, known: list[str]) -> str | None:
    found = difflib.get_close_matches(word, known, n=1)
    return found[0] if found else None
