"""One pass over a log of any size: only the lines around anchors are cut out, numbered and handed on.

The cost per byte is the search for a few dozen literals in native code; everything else is paid per line of interest.
What comes out does not depend on where the chunks of the source happen to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ahocorasick_rs import MATCHKIND_LEFTMOST_FIRST, BytesAhoCorasick

from analyzers.model import Source
from analyzers.reading.clean import clean, split_prefixes

#: A line longer than this is handled in pieces of this size, all with the number of the line.
SEGMENT_BYTES = 64 * 1024
#: The text of a line is cut to this size, around the first anchor in it.
TEXT_BYTES = 8 * 1024
_TEXT_BEFORE = 2 * 1024
#: The end of a log is always told: this many lines, if they fit in this many bytes.
TAIL_LINES = 40
TAIL_BYTES = 16 * 1024
#: A log that hits on nearly every line is cut off here; its end is still told.
MAX_LINES = 200_000
#: Above 64 patterns the search falls from its vector code to an automaton seven times slower: take two searches.
_PATTERNS_PER_SEARCH = 60


@dataclass(frozen=True, slots=True)
class Anchor:
    """A literal that makes a line interesting, with the number of lines after it that belong to it.

    `most` caps floods: further lines with this anchor are counted, and told only if something else asks for them.
    """

    literal: str
    after: int = 0
    most: int = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of interest. `number` is 1-based and counts LF only; `offset` is in bytes from the start of the source.

    `text` has no colours, stamp or rank prefix; `rank` is that of the prefix, `at` (UTC) that of GitHub's stamp. A line
    with carriage returns gives several of these with the same number. `hit` tells an anchor's line from its company.
    """

    number: int
    offset: int
    text: str
    rank: int | None = None
    at: datetime | None = None
    hit: bool = False


class Anchors:
    """A compiled set of anchors; build it once, use it for any number of logs, from any thread."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        """Compile; of two anchors with one literal the wider is kept."""
        widest: dict[str, Anchor] = {}
        for anchor in anchors:
            known = widest.get(anchor.literal)
            if known is None or anchor.after > known.after:
                widest[anchor.literal] = anchor
        self.anchors = tuple(widest.values())
        self._searches = tuple(
            (start, BytesAhoCorasick([a.literal.encode() for a in part], matchkind=MATCHKIND_LEFTMOST_FIRST))
            for start in range(0, len(self.anchors), _PATTERNS_PER_SEARCH)
            if (part := self.anchors[start : start + _PATTERNS_PER_SEARCH])
        )

    def find(self, block: bytes) -> list[tuple[int, int, int]]:
        """Return (start, end, index of the anchor) of each match, in order."""
        found = [
            (start, end, first + index)
            for first, search in self._searches
            for index, start, end in search.find_matches_as_indexes(block)
        ]
        if len(self._searches) > 1:
            found.sort()
        return found


class LogScan:
    """The lines of interest of one source, in order. Iterate once; after that the three counts are final."""

    def __init__(self, source: Source, anchors: Anchors, *, woven: bool = False) -> None:
        """Prepare; `woven`: the lines of several ranks stand in this file (see `split_prefixes`)."""
        self._source = source
        self._anchors = anchors
        self._woven = woven
        self._number = 1  # of the line at the place reached
        self._window = 0  # lines still owed to the anchor before
        self._emitted = 0
        self._tail = b""  # what was passed over since the last line handed on, at most TAIL_BYTES
        self._tail_cut = False
        self._open = False  # what was read last does not end a line
        self.counts = [0] * len(anchors.anchors)
        self.size_bytes = 0
        self.lines = 0

    def __iter__(self) -> Iterator[Line]:
        """Read the source once and yield what is of interest."""
        carry = b""
        for chunk in self._source.chunks():
            block = carry + chunk if carry else bytes(chunk)
            cut = block.rfind(b"\n") + 1
            cut += (len(block) - cut) // SEGMENT_BYTES * SEGMENT_BYTES
            carry = block[cut:]
            if cut:
                yield from self._read_block(block[:cut])
        if carry:
            yield from self._read_block(carry)
        self.lines = self._number - 1 + self._open
        yield from self._read_tail()

    def _read_block(self, block: bytes) -> Iterator[Line]:
        """Yield from a block of whole segments; `pos` always stands at the start of one."""
        hits = self._anchors.find(block)
        pos, reached = 0, 0
        while pos < len(block):
            reached = _first_from(hits, reached, pos)
            if self._window <= 0 or self._emitted >= MAX_LINES:
                start, reached = self._next_start(block, hits, reached, pos)
                self._pass_over(block, pos, start)
                pos = start
                if pos >= len(block):
                    break
            end = _segment_end(block, pos)
            inside, reached = _hits_until(hits, reached, end)
            self._open_window(inside)
            yield from self._cut(block, pos, end, inside)
            self._tail, self._tail_cut = b"", False
            self._number += block.endswith(b"\n", pos, end)
            pos = end
        self.size_bytes += len(block)
        self._open = not block.endswith(b"\n")

    def _next_start(self, block: bytes, hits: list[tuple[int, int, int]], reached: int, pos: int) -> tuple[int, int]:
        """Find the start of the next segment with an anchor that is not used up; count those that are."""
        line_start, line_end = pos, -1
        for i in range(reached, len(hits)):
            start, end, index = hits[i]
            if self.counts[index] >= self._anchors.anchors[index].most or self._emitted >= MAX_LINES:
                self.counts[index] += 1
                continue
            if start >= line_end:
                line_start = block.rfind(b"\n", pos, start) + 1 or pos
                line_end = block.find(b"\n", start)
                line_end = len(block) if line_end < 0 else line_end
            segment = line_start + (start - line_start) // SEGMENT_BYTES * SEGMENT_BYTES
            if end <= segment + SEGMENT_BYTES:
                return segment, i
        return len(block), len(hits)

    def _open_window(self, inside: list[tuple[int, int, int]]) -> None:
        self._window -= 1
        for _, _, index in inside:
            anchor = self._anchors.anchors[index]
            self.counts[index] += 1
            if self.counts[index] <= anchor.most:
                self._window = max(self._window, anchor.after)

    def _pass_over(self, block: bytes, pos: int, end: int) -> None:
        """Count the lines that nobody asked for, and keep the last of them for the end of the log."""
        if end <= pos:
            return
        self._number += block.count(b"\n", pos, end)
        passed = self._tail + block[max(pos, end - TAIL_BYTES) : end]
        self._tail_cut = self._tail_cut or end - pos > TAIL_BYTES or len(passed) > TAIL_BYTES
        self._tail = passed[-TAIL_BYTES:]

    def _cut(self, block: bytes, pos: int, end: int, inside: list[tuple[int, int, int]]) -> Iterator[Line]:
        """Yield the line of one segment; a carriage return starts it anew, as on a terminal."""
        piece_start = pos
        pieces: list[tuple[int, int]] = []
        for piece in block[pos:end].rstrip(b"\r\n").split(b"\r"):
            pieces.append((piece_start, piece_start + len(piece)))
            piece_start += len(piece) + 1
        last = max((i for i, (a, b) in enumerate(pieces) if block[a:b].strip()), default=0)
        for i, (start, stop) in enumerate(pieces):
            anchored = next((at for at, _, _ in inside if start <= at < stop), None)
            if anchored is None and i != last:
                continue
            begin = start if stop - start <= TEXT_BYTES else max(start, (anchored or start) - _TEXT_BEFORE)
            yield self._line(
                self.size_bytes + begin, block[begin : min(stop, begin + TEXT_BYTES)], anchored is not None
            )
            self._emitted += 1

    def _line(self, offset: int, raw: bytes, hit: bool) -> Line:
        text = clean(raw)
        if not text or not (text[0] in "[0123456789 " or "/" in text[:64]):
            return Line(self._number, offset, text, hit=hit)
        prefixes = split_prefixes(text, woven=self._woven)
        return Line(self._number, offset, prefixes.text, prefixes.rank, prefixes.at, hit)

    def _read_tail(self) -> Iterator[Line]:
        """Yield the last lines of the log, unless they were handed on already."""
        tail = self._tail
        if self._tail_cut:
            tail = tail[tail.find(b"\n") + 1 :]
        parts = tail.removesuffix(b"\n").split(b"\n") if tail else []
        number = self.lines + 1
        offset = self.size_bytes + self._open
        rows: list[tuple[int, int, bytes]] = []
        for part in reversed(parts[-TAIL_LINES:]):
            number -= 1
            offset -= len(part) + 1
            rows.append((number, offset, part))
        for number, offset, part in reversed(rows):
            self._number = number
            text = part.rstrip(b"\r").rpartition(b"\r")[2]
            yield self._line(offset + part.rstrip(b"\r").rfind(b"\r") + 1, text[:TEXT_BYTES], hit=False)


def _first_from(hits: list[tuple[int, int, int]], reached: int, pos: int) -> int:
    while reached < len(hits) and hits[reached][0] < pos:
        reached += 1
    return reached


def _hits_until(hits: list[tuple[int, int, int]], reached: int, end: int) -> tuple[list[tuple[int, int, int]], int]:
    inside = []
    while reached < len(hits) and hits[reached][0] < end:
        if hits[reached][1] <= end:
            inside.append(hits[reached])
        reached += 1
    return inside, reached


def _segment_end(block: bytes, pos: int) -> int:
    newline = block.find(b"\n", pos, pos + SEGMENT_BYTES)
    return newline + 1 if newline >= 0 else min(pos + SEGMENT_BYTES, len(block))
