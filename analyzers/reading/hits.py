"""The hits of one log's search, block by block: a little at a time while the search changes, else a block at once."""

from __future__ import annotations

from analyzers.reading.caps import Caps
from analyzers.reading.literals import Match

#: Where the search has changed it may soon change again, and then all that was found further on was found in vain.
_NEAR_BYTES = 16 * 1024
_FURTHER = 8


class Hits:
    """Searches with `caps.search` as it is at each place. What is found must not depend on where blocks end."""

    def __init__(self, caps: Caps) -> None:
        """Begin at the start of a log, which is where the first anchors are used up."""
        self._caps = caps
        self._search = caps.search
        self._near = _NEAR_BYTES
        self._block = b""
        self._stop = self._known = self._reached = 0
        self._found: list[Match] = []
        self._at = 0  # where in the block the search began whose hits are at hand

    def begin(self, block: bytes, begin: int, stop: int) -> None:
        """Go on with block[begin:stop], whole lines or segments."""
        self._block, self._stop, self._known = block, stop, begin
        self._found, self._reached = [], 0

    def end(self) -> None:
        """Let go of the block."""
        self._block = b""

    def key(self, hit: Match) -> bytes:
        """Return the key that was found."""
        return self._search.keys[hit[0]]

    def next(self, pos: int) -> Match | None:
        """Return the first hit that ends behind `pos`, its places counted from the start of the block."""
        if self._search is not self._caps.search:
            self._search = self._caps.search
            self._near = _NEAR_BYTES
            self._known, self._found, self._reached = pos, [], 0
        while True:
            at, found = self._at, self._found
            while self._reached < len(found):
                key, start, end = found[self._reached]
                if at + end > pos:
                    return key, at + start, at + end
                self._reached += 1
            if self._known >= self._stop:
                return None
            self._look(max(self._known, pos))

    def _look(self, pos: int) -> None:
        """Search on from a start of a line or segment."""
        block, end = self._block, 0
        if self._near:
            end = block.rfind(b"\n", pos, min(pos + self._near, self._stop)) + 1
            self._near = self._near * _FURTHER if self._near < len(block) else 0
        self._known = end if pos < end < self._stop else self._stop
        whole = pos == 0 and self._known == len(block)
        self._at, self._reached = pos, 0
        self._found = self._search.find(block if whole else memoryview(block)[pos : self._known])
