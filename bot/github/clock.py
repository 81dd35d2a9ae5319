"""The time as GitHub has it: its answers are stamped, and between two of them a clock runs that nobody can set.

Tokens end, limits are lifted and the App's key is taken by GitHub's clock, and people see days there. The host's own
clock may be wrong by hours, or be set while we work: then only a figure and a line show it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import structlog

log = structlog.get_logger()

#: Answers are stamped in whole seconds and take a while to arrive: what differs by less is the same time.
SAME_S = 5.0
#: From here on the host's clock is called wrong, in seconds: so much of it GitHub allows in the signature of a key.
WRONG_S = 60.0
#: GitHub answers since 2008; near the last year that there is, no time could be reckoned from what was heard.
YEARS = range(2008, 9000)


class GitHubClock:
    """Call it for the time in UTC, and `hear` the header `Date` of each answer. Until then it is the host's time."""

    def __init__(self, own: Callable[[], datetime], *, steady: Callable[[], float] = time.monotonic) -> None:
        """Take the host's clock, and one in seconds that is never set."""
        self._own = own
        self._steady = steady
        self._known: tuple[datetime, float] | None = None
        self._told = False

    def __call__(self) -> datetime:
        if self._known is None:
            return self._own()
        heard, then_s = self._known
        return heard + timedelta(seconds=self._steady() - then_s)

    def hear(self, date: str | None) -> None:
        """Take the time of an answer; one without a date, or with one that cannot be, says nothing."""
        heard = _parse(date)
        if heard is None:
            return
        if self._known is None or abs((self() - heard).total_seconds()) > SAME_S:
            self._known = (heard, self._steady())
        self._tell()

    def earlier(self) -> datetime:
        """Return the earlier of GitHub's time and the host's: by it nothing is deleted too soon, whichever is wrong."""
        return min(self(), self._own())

    def ahead_s(self) -> float:
        """Return by how many seconds the host's clock is ahead of GitHub's; below 0: behind."""
        return (self._own() - self()).total_seconds()

    def troubles(self) -> dict[str, str]:
        """Return what is wrong now, as `Weather.troubles` does."""
        ahead_s = self.ahead_s()
        return {"clock": f"the host's clock is {_in_words(ahead_s)} GitHub's"} if _is_wrong(ahead_s) else {}

    def _tell(self) -> None:
        ahead_s = self.ahead_s()
        if _is_wrong(ahead_s) and not self._told:
            log.warning("clock.wrong", ahead_s=round(ahead_s))
        elif self._told and not _is_wrong(ahead_s):
            log.info("clock.right")
        self._told = _is_wrong(ahead_s)


def _is_wrong(ahead_s: float) -> bool:
    return abs(ahead_s) > WRONG_S


def _in_words(ahead_s: float) -> str:
    return f"{abs(ahead_s) / 60:.0f} min {'ahead of' if ahead_s > 0 else 'behind'}"


def _parse(date: str | None) -> datetime | None:
    try:
        heard = parsedate_to_datetime(date or "")
    except (ValueError, OverflowError):
        return None
    if heard.year not in YEARS:
        return None
    return heard.replace(tzinfo=UTC) if heard.tzinfo is None else heard.astimezone(UTC)
