"""What people told the bot: tests that are known to be flaky, jobs that nobody wants to hear about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .context import Context

#: Records of a repository that are kept; the oldest go first.
MOST_FLAKES = 500


async def add_flake(test: str, issue: int, *, by: str, ctx: Context) -> None:
    """Record a test with the issue that says that it fails now and then."""
    record = {"issue": issue, "by": by, "at": ctx.now().date().isoformat()}

    def add(stored: dict[str, Any] | None) -> dict[str, Any]:
        others = {name: value for name, value in (stored or {}).items() if name != test}
        return dict([*others.items(), (test, record)][-MOST_FLAKES:])

    await ctx.store.change("flaky-tests", add)


async def flakes(ctx: Context) -> Mapping[str, Mapping[str, Any]]:
    """Return the recorded tests; each has `issue`, `by` and `at` (a date)."""
    return await ctx.store.recall("flaky-tests") or {}


async def mute_job(number: int, name: str, ctx: Context) -> None:
    """Leave a job out of the comment of a pull request."""
    await ctx.store.change(_muted_key(number), lambda stored: {"jobs": sorted({*_jobs(stored), name})})


async def unmute_job(number: int, name: str | None, ctx: Context) -> None:
    """Take a job in again; None: all of them."""
    await ctx.store.change(
        _muted_key(number), lambda stored: {"jobs": sorted(_jobs(stored) - {name}) if name is not None else []}
    )


async def muted_jobs(number: int, ctx: Context) -> frozenset[str]:
    """Return the names of the jobs that are left out."""
    return frozenset(_jobs(await ctx.store.recall(_muted_key(number))))


def _jobs(stored: Mapping[str, Any] | None) -> set[str]:
    return set((stored or {}).get("jobs", []))


def _muted_key(number: int) -> str:
    return f"muted-{number}"
