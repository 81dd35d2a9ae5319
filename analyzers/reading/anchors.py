"""The literals that make a line interesting, and how they are looked for in every byte of a log.

A search over all bytes is fast for a few dozen short keys only, so each anchor is found by a key: a part of it that it
may share with others. A line with a key is then looked at for the anchors themselves. Thus the number of rules does not
matter to the cost per byte, and what is found does not depend on the choice of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzers.reading.literals import Search, complete_search, plain_search, separate_search
from analyzers.records import dataclass

Keys = tuple[bytes, ...]
#: Gives the keys of these literals: as the function chooses them, perhaps in an earlier process.
Remember = Callable[[Keys, Callable[[], Keys]], Keys]

#: Choosing keys takes as long as searching so many bytes for the anchors themselves.
_LITTLE_BYTES = 2 * 1024**2


@dataclass(frozen=True)
class Anchor:
    """A literal that makes a line interesting, with the number of lines after it that belong to it.

    `most` caps floods: further lines with this anchor are told only if something else asks for them. One of them is
    counted, so that a flood is known for one; then the anchor is looked for no more. With `again` that many are told
    once more after each line that has another anchor: what matters is that it goes on, not how often.
    """

    literal: str
    after: int = 0
    most: int = 1_000
    again: bool = False


@dataclass(frozen=True)
class KeySearch:
    """Compiled keys. `find` gives (index of the key, start, end); in `own` are those that are whole anchors."""

    keys: Keys
    own: frozenset[bytes]
    find: Search


class Anchors:
    """A compiled set of anchors; build it once, use it for any number of logs, from any thread."""

    def __init__(self, anchors: Sequence[Anchor], remember: Remember | None = None) -> None:
        """Compile; of two anchors with one literal the wider is kept.

        Args:
            remember: whoever remembers the keys from process to process.
        """
        widest: dict[str, Anchor] = {}
        for anchor in anchors:
            known = widest.get(anchor.literal)
            if known is None or anchor.after > known.after:
                widest[anchor.literal] = anchor
        self.anchors = tuple(widest.values())
        #: Those that are told again.
        self.again = frozenset(index for index, anchor in enumerate(self.anchors) if anchor.again)
        self.literals = tuple(anchor.literal.encode() for anchor in self.anchors)
        if any(b"\n" in literal or not literal for literal in self.literals):
            raise ValueError("an anchor is a part of one line")
        #: (index of the anchor, start, end) of all occurrences of all anchors in one line.
        self.find_in_line = complete_search(self.literals)
        self._searches: dict[tuple[frozenset[int], frozenset[bytes], bool], KeySearch] = {}
        self._alone: dict[tuple[str, ...], frozenset[int]] = {}
        self._remember = remember
        self._little_bytes = 0

    def without_window(self, literals: tuple[str, ...]) -> frozenset[int]:
        """Return the indices of those of these anchors that ask for no lines after theirs."""
        if literals not in self._alone:
            found = (index for index, one in enumerate(self.anchors) if one.literal in literals and not one.after)
            self._alone[literals] = frozenset(found)
        return self._alone[literals]

    def book(self, size_bytes: int | None) -> bool:
        """Say whether a log of this size and all before it are too little to choose keys for; None is not."""
        self._little_bytes += _LITTLE_BYTES if size_bytes is None else size_bytes
        return self._little_bytes < _LITTLE_BYTES

    def search(self, dropped: frozenset[int], noisy: frozenset[bytes], *, little: bool = False) -> KeySearch:
        """Return a search that hits each line with an anchor, and a few more.

        Args:
            dropped: indices of anchors that need no longer be found.
            noisy: keys that stand in too many lines without an anchor.
            little: it will not be used on much; then it looks for the anchors themselves.
        """
        known = self._searches.get((dropped, noisy, little))
        if known is None:
            wanted = [literal for index, literal in enumerate(self.literals) if index not in dropped]
            if little and self._remember is None:
                known = KeySearch(tuple(wanted), frozenset(wanted), plain_search(wanted))
            else:
                keys = self._keys(wanted, dropped, noisy, little=little)
                known = KeySearch(keys, frozenset(wanted), separate_search(keys))
            self._searches[dropped, noisy, little] = known
        return known

    def _keys(self, wanted: Sequence[bytes], dropped: frozenset[int], noisy: frozenset[bytes], *, little: bool) -> Keys:
        if not dropped and not noisy:
            return self._remember(self.literals, lambda: _chosen(wanted)) if self._remember else _chosen(wanted)
        gone = [self.literals[index] for index in dropped]
        keys = self.search(frozenset(), frozenset(), little=little).keys
        # Not `key in text`: for bytes it makes an exception first, which takes ten times as long.
        good = [key not in noisy and not any(literal.find(key) >= 0 for literal in gone) for key in keys]
        kept = [key for key, is_good in zip(keys, good, strict=True) if is_good]
        bare = [literal for literal in wanted if not any(literal.find(key) >= 0 for key in kept)]
        if little:
            return (*kept, *bare)
        if len(bare) > len(keys) - len(kept):
            return _chosen(wanted, gone, noisy)
        from analyzers.reading.keys import refill  # noqa: PLC0415 (see `_chosen`)

        return refill(keys, good, bare, gone=gone, noisy=noisy)


def _chosen(wanted: Sequence[bytes], gone: Sequence[bytes] = (), noisy: frozenset[bytes] = frozenset()) -> Keys:
    from analyzers.reading.keys import choose_keys  # noqa: PLC0415 (its tables take as long as a small log)

    return choose_keys(wanted, gone=gone, noisy=noisy)
