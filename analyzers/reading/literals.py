"""Searching bytes for many literals and counting lines, in native code where it is installed.

The native searches release the interpreter's lock. The fallbacks are slower and give the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

#: A search for more patterns than this falls from vector code to an automaton that is seven times slower; up to
#: FEW_PATTERNS it sorts them into half as many buckets, and steps twice as far.
PATTERNS_PER_SEARCH, FEW_PATTERNS = 64, 32

#: (index of the pattern, start, end)
Match = tuple[int, int, int]


class Search(Protocol):
    """A compiled search; use it from any thread."""

    def __call__(self, block: bytes | memoryview, /) -> list[Match]:
        """Return matches in the block."""
        ...


def separate_search(patterns: Sequence[bytes]) -> Search:
    """Return a fast search over long blocks, of matches that do not overlap: one may hide another that overlaps it."""
    try:
        from ahocorasick_rs import MATCHKIND_LEFTMOST_FIRST, BytesAhoCorasick  # noqa: PLC0415  (may be missing)
    except ImportError:
        return _pure_separate(patterns)
    searches: list[tuple[int, Search]] = []
    for first, end in rounds(len(patterns)):
        compiled = BytesAhoCorasick(patterns[first:end], matchkind=MATCHKIND_LEFTMOST_FIRST)
        searches.append((first, compiled.find_matches_as_indexes))
    return searches[0][1] if len(searches) == 1 else _joined(searches)


def rounds(patterns: int) -> list[tuple[int, int]]:
    """Return how so many patterns are split among searches: the first and the end of each."""
    count = max(1, -(-patterns // PATTERNS_PER_SEARCH))
    return [(part * patterns // count, (part + 1) * patterns // count) for part in range(count)]


def plain_search(patterns: Sequence[bytes]) -> Search:
    """Return what `separate_search` does, made at once for any number of patterns: it searches a tenth as fast."""
    try:
        from ahocorasick_rs import MATCHKIND_LEFTMOST_FIRST, BytesAhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return _pure_separate(patterns)
    compiled = BytesAhoCorasick(
        patterns, matchkind=MATCHKIND_LEFTMOST_FIRST, implementation=Implementation.ContiguousNFA
    )
    return compiled.find_matches_as_indexes


def complete_search(patterns: Sequence[bytes]) -> Search:
    """Return a search for single lines that finds every occurrence of every pattern, in no particular order."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return _pure_complete(patterns)
    compiled = BytesAhoCorasick(patterns, implementation=Implementation.ContiguousNFA)
    return partial(compiled.find_matches_as_indexes, overlapping=True)


def _joined(searches: Sequence[tuple[int, Search]]) -> Search:
    def search(block: bytes | memoryview) -> list[Match]:
        found = [(first + index, start, end) for first, each in searches for index, start, end in each(block)]
        found.sort(key=lambda match: match[1])
        return found

    return search


def _pure_separate(patterns: Sequence[bytes]) -> Search:
    if not patterns:
        return lambda _: []
    places = {pattern: index for index, pattern in enumerate(patterns)}
    compiled = re.compile(b"|".join(map(re.escape, patterns)))
    return lambda block: [(places[bytes(found[0])], found.start(), found.end()) for found in compiled.finditer(block)]


def _pure_complete(patterns: Sequence[bytes]) -> Search:
    def search(block: bytes | memoryview) -> list[Match]:
        line = bytes(block)
        found: list[Match] = []
        for index, pattern in enumerate(patterns):
            start = line.find(pattern)
            while start >= 0:
                found.append((index, start, start + len(pattern)))
                start = line.find(pattern, start + 1)
        return found

    return search


def _line_counter() -> Callable[[bytes, int, int], int]:
    try:
        import stringzilla  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        return lambda block, start, end: block.count(b"\n", start, end)
    count: Callable[[bytes, bytes, int, int], int] = stringzilla.count
    return lambda block, start, end: count(block, b"\n", start, end)


#: Counts the line feeds in block[start:end]; an order of magnitude faster than `bytes.count`, which keeps the lock too.
count_lines = _line_counter()
