"""Words for what one job did several times over: the tests of one artifact, and the starts of one test."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Attempt, Category, Diagnosis

from .safe_text import count, ranks

#: Tests and starts that are named; of the rest the number is told.
SHOWN = 4


def say_tests(attempts: Sequence[Attempt]) -> str:
    """Return `gpt_b failed, 4 others passed`; "" where the artifact holds one test only."""
    lasts = {attempt.test: attempt.category for attempt in attempts}
    if len(lasts) < 2:
        return ""
    failed = [test for test, category in lasts.items() if category]
    passed = len(lasts) - len(failed)
    if not failed:
        return f"{len(lasts)} tests passed"
    named = ", ".join(failed[:SHOWN]) + (f" and {len(failed) - SHOWN} more" if len(failed) > SHOWN else "")
    return f"{named} failed" + (f", {count(passed, 'other')} passed" if passed else "")


def say_starts(attempts: Sequence[Attempt]) -> list[tuple[str, str]]:
    """Return for each start that another one of the same test followed: which it was, and how it ended."""
    several = len({attempt.test for attempt in attempts}) > 1
    told = []
    for test in dict.fromkeys(attempt.test for attempt in attempts):
        own = [attempt for attempt in attempts if attempt.test == test]
        where = f" of {test}" if several and test else ""
        told += [(f"start {number}{where}", _ended(one)) for number, one in enumerate(own[:-1], start=1)]
    return told


def _ended(attempt: Attempt) -> str:
    if attempt.category is None:
        return "passed"
    noun = "rank" if len(attempt.ranks) == 1 else "ranks"
    return str(attempt.category) + (f", {noun} {ranks(attempt.ranks)}" if attempt.ranks else "")


def say_ranks(found: Diagnosis) -> str:
    """Return what part each rank had: `1 failed first; 0, 2–3 only followed`."""
    hung = found.category is Category.COLLECTIVE_TIMEOUT
    parts = []
    if found.culprit_ranks:
        parts.append(f"{ranks(found.culprit_ranks)} {'held the others up' if hung else 'failed first'}")
    if found.victim_ranks:
        parts.append(f"{ranks(found.victim_ranks)} {'waited' if hung else 'only followed'}")
    if found.silent_ranks:
        parts.append(f"{ranks(found.silent_ranks)} left no log")
    return "; ".join(parts)
