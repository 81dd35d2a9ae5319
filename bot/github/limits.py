"""When GitHub asks to wait, for how long, and how writes are kept apart.

Source: GitHub's "Rate limits for the REST API" and "Best practices for using the REST API": first `retry-after`, then
`x-ratelimit-reset` when nothing remains, else at least a minute and more each time; at least a second between writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

from handlers.context import RateLimitedError

#: What GitHub says at least to wait after a secondary limit that names no time, in seconds.
UNNAMED_WAIT_S = 60.0
#: No wait is longer: a primary limit resets within the hour, and a clock that is wrong must not park us for a day.
LONGEST_WAIT_S = 3_900.0
#: So many short waits in a row are obeyed in place; then the work goes back to the queue.
SHORT_WAITS = 3
#: A secondary limit without any header is told from a missing permission by these words only.
LIMIT_WORDS = ("rate limit", "abuse detection")


def is_limit(status: int, headers: Mapping[str, str], message: str) -> bool:
    """Tell "wait" from "no": both can be a 403."""
    if status == 429:
        return True
    if status != 403:
        return False
    said = message.lower()
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or any(words in said for words in LIMIT_WORDS)
    )


def wait_s(headers: Mapping[str, str], *, now: datetime, strikes: int) -> float:
    """Return the seconds to wait.

    Args:
        headers: of the refusing answer, names in lower case or case-insensitive.
        now: UTC, to read `x-ratelimit-reset` (seconds since 1970) against.
        strikes: refusals in a row before this one; doubles the wait when GitHub names none.
    """
    named = _number(headers.get("retry-after"))
    if named is None and headers.get("x-ratelimit-remaining") == "0":
        reset = _number(headers.get("x-ratelimit-reset"))
        named = None if reset is None else reset - now.timestamp() + 1.0
    if named is None:
        named = UNNAMED_WAIT_S * 2.0**strikes
    return min(max(named, 1.0), LONGEST_WAIT_S)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # `retry-after` may be a date in HTTP; GitHub never sends one, and the minute is the safe reading


class Gate:
    """Holds back every request of one installation while GitHub wants none from it."""

    def __init__(self, *, clock: Callable[[], datetime], longest_stay_s: float) -> None:
        self._clock = clock
        self._longest_stay_s = longest_stay_s  # what may be waited out in place
        self._closed_until = 0.0  # on the loop's clock
        self._strikes = 0

    async def enter(self) -> None:
        """Return when a request may be sent.

        Raises:
            RateLimitedError: that would take too long to wait for in place.
        """
        remaining_s = self._closed_until - asyncio.get_running_loop().time()
        if remaining_s <= 0:
            return
        if remaining_s > self._longest_stay_s or self._strikes > SHORT_WAITS:
            raise RateLimitedError(f"GitHub asked to wait {remaining_s:.0f} s", after_s=remaining_s)
        await asyncio.sleep(remaining_s)

    def close(self, headers: Mapping[str, str]) -> float:
        """Note that GitHub refused a request for its rate; return for how many seconds nothing is asked now."""
        wait = wait_s(headers, now=self._clock(), strikes=self._strikes)
        self._strikes += 1
        now = asyncio.get_running_loop().time()
        self._closed_until = max(self._closed_until, now + wait)
        return self._closed_until - now

    def passed(self) -> None:
        """Note that GitHub let a request through."""
        self._strikes = 0


class WriteTurns:
    """One write at a time, and a pause between the end of one and the start of the next."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._turn = asyncio.Lock()
        self._next_at = 0.0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._next_at - loop.time()))
            try:
                yield
            finally:
                self._next_at = loop.time() + self._pause_s
