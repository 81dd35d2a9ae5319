"""Finds the lines that are alike and may be handed on together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from analyzers.reading.anchors import Anchors
from analyzers.reading.lines import Alike
from analyzers.reading.literals import Search

#: Within so many bytes of a line that may stand in a stretch its first anchor is found.
_SIGN_BYTES = 500


class Stretches:
    """The stretches of one log. In `common` are the indices of the anchors that may stand in them."""

    def __init__(self, alike: Alike, anchors: Anchors) -> None:
        """Prepare; an anchor that asks for the lines after it is not for stretches."""
        self._pattern = alike.stretch
        self._sign = alike.anchors[0].encode()
        self._anchors = anchors
        self.common = anchors.without_window(alike.anchors)
        self._end = 0  # of what is known of the block at hand
        self._foreign: list[int] = []  # the lines before it that are alike and hold another anchor

    def begin_block(self) -> None:
        """Forget what was found in the block before."""
        self._end = 0

    def find(self, block: bytes, start: int, stop: int, others: Callable[[], Search]) -> bytes:
        """Return the lines of block[start:stop] from its first on that are alike and hold no other anchor.

        Each line is looked at once, however often this is asked for the lines of a block, one after the other.

        Args:
            others: gives a search for all other anchors that still count.
        """
        if start >= self._end:
            if block.find(self._sign, start, start + _SIGN_BYTES) < 0:  # as in logs without tests
                return b""
            found = self._pattern.match(block, start, stop)
            if found is None:
                return b""
            self._end = found.end()
            self._foreign = self._find_foreign(found[0], start, others)
        place = bisect_left(self._foreign, start)
        return block[start : self._foreign[place] if place < len(self._foreign) else self._end]

    def _find_foreign(self, many: bytes, start: int, others: Callable[[], Search]) -> list[int]:
        foreign: list[int] = []
        reached = 0
        for _, at, _ in others()(many):
            if at < reached:
                continue
            first, reached = many.rfind(b"\n", 0, at) + 1, many.find(b"\n", at)
            if any(index not in self.common for index, _, _ in self._anchors.find_in_line(many[first:reached])):
                foreign.append(start + first)
        return foreign
