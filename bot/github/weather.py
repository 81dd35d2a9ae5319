"""How GitHub has been answering lately: for `/readyz` and the metrics, where an outage of GitHub's must show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

Said = Literal["ok", "refused", "rate_limited", "unreachable"]


class Weather:
    """Told about every answer of GitHub's, by all installations of this process."""

    def __init__(self, clock: Callable[[], datetime], observe: Callable[[Said], None]) -> None:
        self._clock = clock
        self._observe = observe
        self._trouble: Said | None = None
        self._since: datetime | None = None

    def note(self, said: Said) -> None:
        """Note one answer; a refusal is an answer, too: GitHub is there."""
        self._observe(said)
        if said in {"ok", "refused"}:
            self._trouble = self._since = None
        elif said != self._trouble:
            self._trouble, self._since = said, self._clock()

    def trouble(self) -> str | None:
        """Return what is wrong now and since when (UTC), None if GitHub answers."""
        if self._trouble is None or self._since is None:
            return None
        return f"{self._trouble} since {self._since.isoformat(timespec='seconds')}"
