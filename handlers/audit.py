"""What the bot did or did not do on a pull request and why: kept, logged, and shown by `/mlm why`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import structlog

from .context import Context, Run

log = structlog.get_logger()

#: Older entries of a pull request are dropped.
KEPT = 30


@dataclass(frozen=True)
class Deed:
    """One action, or one that was asked for and not done (`done` is False); `why` is a plain sentence."""

    what: str  # a stable phrase: "re-run", "cancel", "label", "automatic retry", ...
    by: str
    why: str
    done: bool = True
    head_sha: str = ""
    run_id: int | None = None
    attempt: int | None = None  # the attempt that came of it, or that was acted upon
    comment_id: int | None = None


@dataclass(frozen=True)
class Entry:
    """A deed with its time (ISO 8601, UTC)."""

    at: str
    deed: Deed


async def record(number: int, deed: Deed, ctx: Context) -> None:
    """Keep a deed. One that is recorded again after a crash stays one."""
    entry = {"at": ctx.now().isoformat(timespec="seconds"), **asdict(deed)}

    def add(stored: dict[str, Any] | None) -> dict[str, Any]:
        entries = list((stored or {}).get("entries", []))
        known = any({**old, "at": ""} == {**entry, "at": ""} for old in entries[-3:])
        return {"entries": entries if known else [*entries, entry][-KEPT:]}

    await ctx.store.change(_key(number), add)
    log.info("audit", pull=number, **asdict(deed))


async def history(number: int, ctx: Context) -> list[Entry]:
    """Return what is kept of a pull request, oldest first."""
    stored = await ctx.store.recall(_key(number)) or {"entries": []}
    return [
        Entry(str(item["at"]), Deed(**{name: value for name, value in item.items() if name != "at"}))
        for item in stored["entries"]
    ]


def of_run(run: Run, *, attempt: int | None = None) -> dict[str, Any]:
    """Return the fields of a deed that name a run."""
    return {"head_sha": run.head_sha, "run_id": run.id, "attempt": attempt or run.attempt}


def _key(number: int) -> str:
    return f"audit-{number}"
