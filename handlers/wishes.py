"""A re-run that somebody wished for while the run was in progress: remembered until the run is done.

One per pull request: the newest wish replaces an older one. Labels have a wish of their own (`handlers/labels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .context import Context
from .labels import wish_key as label_wish_key


@dataclass(frozen=True)
class Wish:
    """What to do once the run is done. `data` is that of the command's task, so that its one answer can be edited."""

    key: str  # of the line that was said; its answer is stored under it
    line: str
    head_sha: str
    data: dict[str, Any]


async def remember(number: int, wish: Wish, ctx: Context) -> Wish | None:
    """Store a wish; return the one that it replaces, None if there was none."""
    before = await recall(number, ctx)
    value = {"key": wish.key, "line": wish.line, "head_sha": wish.head_sha, "data": wish.data}
    await ctx.store.remember(key(number), value)
    return before if before is not None and before.key != wish.key else None


async def recall(number: int, ctx: Context) -> Wish | None:
    """Return the wish that waits."""
    stored = await ctx.store.recall(key(number))
    return None if stored is None else Wish(**stored)


async def forget(number: int, ctx: Context) -> None:
    """Drop the wish, if there is one."""
    await ctx.store.forget(key(number))


async def forget_all(number: int, ctx: Context) -> bool:
    """Drop what waits for the end of a run, the labels' wish too; say whether anything did."""
    waited = [await ctx.store.recall(one) for one in (key(number), label_wish_key(number))]
    await ctx.store.forget(key(number))
    await ctx.store.forget(label_wish_key(number))
    return any(wish is not None for wish in waited)


def key(number: int) -> str:
    """Under which key the wish is stored."""
    return f"rerun-wish-{number}"
