"""What a scan still looks for in one log: what floods it is told up to a cap, and then searched for no more."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.reading.anchors import Anchors
from analyzers.reading.literals import Match, Search

#: A key in so many lines without an anchor is given up for the anchors themselves.
_NOISE = 500
#: So often anchors are told again: each time the rest of the piece at hand is searched anew.
_RENEWALS = 200


class Caps:
    """Counts the anchors of one log. `search` looks for those that are not used up; it changes as they are.

    `counts`: how often each occurred, in the order of `Anchors.anchors`; those of a flood up to its first too many.
    """

    def __init__(self, anchors: Anchors, size_bytes: int | None) -> None:
        """Begin to count; `size_bytes` is the log's size if it is known."""
        self._anchors = anchors
        self._dropped: frozenset[int] = frozenset()
        self._noisy: frozenset[bytes] = frozenset()
        self._misses: dict[bytes, int] = {}
        self._before = dict.fromkeys(anchors.again, 0)  # how often they occurred before they were to be told again
        self._renewals = _RENEWALS
        self._little = anchors.book(size_bytes)
        self.counts = [0] * len(anchors.anchors)
        self.search = anchors.search(self._dropped, self._noisy, little=self._little)

    @property
    def noisy(self) -> frozenset[bytes]:
        """The keys that were given up."""
        return self._noisy

    def count(self, inside: Sequence[Match], key: bytes) -> tuple[list[Match], bool]:
        """Count the anchors inside of a line that has this key.

        Returns:
            Those that were still looked for: of the others it depends on the keys whether they are met. And whether one
            is not used up.
        """
        anchors, counts = self._anchors.anchors, self.counts
        live = renewing = False
        known = [match for match in inside if match[0] not in self._dropped]
        for index, _, _ in known:
            if index in self._dropped:
                continue
            count = counts[index] = counts[index] + 1
            if index in self._before:
                count -= self._before[index]
            else:
                renewing = True
            if count <= anchors[index].most:
                live = True
            else:
                self._change(self._dropped | {index})
        if renewing:
            self._renew()
        if not known and key not in self.search.own:
            self._miss(key)
        return known, live

    def count_all(self, many: bytes, common: frozenset[int]) -> bool:
        """Count the lines of a stretch, in which no others occur; False, and nothing is counted, if one is used up."""
        anchors = self._anchors.anchors
        counts = {index: self.counts[index] + many.count(anchors[index].literal.encode()) for index in common}
        if any(count > anchors[index].most for index, count in counts.items()):
            return False
        for index, count in counts.items():
            self.counts[index] = count
        self._renew()
        return True

    def search_without(self, common: frozenset[int]) -> Search:
        """Return a search for the anchors that are not used up, but for these."""
        return self._anchors.search(self._dropped | common, self._noisy, little=self._little).find

    def is_told(self, index: int) -> bool:
        """Whether the line that was counted last was not too many of this anchor."""
        return self.counts[index] - self._before.get(index, 0) <= self._anchors.anchors[index].most

    def _renew(self) -> None:
        """Something else was met: what is told again is looked for anew."""
        for index in self._before:
            self._before[index] = self.counts[index]
        if self._renewals and not self._dropped.isdisjoint(self._before):
            self._renewals -= 1
            self._change(self._dropped - self._anchors.again)

    def _miss(self, key: bytes) -> None:
        self._misses[key] = self._misses.get(key, 0) + 1
        if self._misses[key] >= _NOISE:
            self._noisy |= {key}
            self._change(self._dropped)

    def _change(self, dropped: frozenset[int]) -> None:
        self._dropped = dropped
        self.search = self._anchors.search(dropped, self._noisy, little=self._little)
