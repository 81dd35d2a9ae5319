"""One pass over a log of any size: only the lines around anchors are cut out, numbered and handed on.

The cost per byte is the search for a few dozen literals in native code; everything else is paid per line of interest.
What comes out does not depend on where the chunks of the source happen to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from analyzers.model import Source
from analyzers.reading.anchors import Anchor, Anchors
from analyzers.reading.caps import Caps
from analyzers.reading.clean import clean, may_have_prefixes, split_prefixes
from analyzers.reading.hits import Hits
from analyzers.reading.lines import Alike, Line, Rest, Stretch
from analyzers.reading.literals import Match, count_lines
from analyzers.reading.stretches import Stretches

__all__ = ["Alike", "Anchor", "Anchors", "Line", "LogScan", "Rest", "Stretch"]

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
#: How Python begins a frame, in tracebacks and in the stacks of a crash, and the most lines that it prints of one.
_FRAME, _FRAME_LINES = b'  File "', 8


class LogScan:
    """The lines of interest of one source, in order. Iterate once; after that `lines` and `size_bytes` are final."""

    def __init__(self, source: Source, anchors: Anchors, *, woven: bool = False, alike: Alike | None = None) -> None:
        """Prepare.

        Args:
            woven: the lines of several ranks stand in this file (see `split_prefixes`).
            alike: what `parts` may hand on as stretches.
        """
        self._source = source
        self._anchors = anchors
        self._woven = woven
        self._stretches = Stretches(alike, anchors) if alike is not None else None
        self._caps = Caps(anchors, source.size_bytes)
        self._hits = Hits(self._caps)
        self._number = 1  # of the line at the place reached
        self._window = 0  # lines still owed to the anchor before
        self._emitted = 0
        self._tail = b""  # what was passed over since the last line handed on, at most TAIL_BYTES
        self._tail_cut = False
        self._open = False  # what was read last does not end a line
        self.size_bytes = 0
        self.lines = 0

    @property
    def counts(self) -> list[int]:
        """How often each anchor occurred, in the order of `Anchors.anchors`; of a flood, up to its first too many."""
        return self._caps.counts

    @property
    def torn(self) -> bool:
        """Whether what was read so far ends in the middle of a line, as a log does that was cut."""
        return self._open

    def __iter__(self) -> Iterator[Line]:
        """Read the source once and yield the lines of interest."""
        for part in self.parts():
            if isinstance(part, Line):
                yield part
            else:
                yield from part.lines()

    def parts(self) -> Iterator[Line | Stretch | Rest]:
        """Do the same, with lines that are alike in one, and the last ones in one."""
        for block, begin, end in _blocks(self._source.chunks()):
            yield from self._read_block(block, begin, end)
            self.size_bytes += end - begin
            self._open = not block.endswith(b"\n", begin, end)
            del block  # not kept while the next piece is made: that takes the same place, still in the cache
        self.lines = self._number - 1 + self._open
        if last := tuple(self._read_tail()):
            yield Rest(last)

    def _read_block(self, block: bytes, begin: int, stop: int) -> Iterator[Line | Stretch]:
        """Yield from block[begin:stop], whole segments all of them; `pos` always stands at the start of one."""
        if self._stretches is not None:
            self._stretches.begin_block()
        self._hits.begin(block, begin, stop)
        base = self.size_bytes - begin
        pos = passed = begin
        while pos < stop and self._emitted < MAX_LINES:
            hit = self._hits.next(pos)
            if self._window > 0:
                start = pos
            elif hit is not None:
                start = _segment_start(block, pos, max(pos, hit[1]))
                if self._stretches is not None and (many := self._find_stretch(self._stretches, block, start, stop)):
                    self._pass_over(block, passed, start)
                    yield self._take_stretch(many, base + start)
                    pos = passed = start + len(many)
                    continue
            else:
                break
            end = _segment_end(block, start, stop)
            raw = block[start:end]
            inside: list[Match] = []
            live = False
            if hit is not None and hit[1] < end:
                inside, live = self._caps.count(self._anchors.find_in_line(raw), self._hits.key(hit))
            if live or self._window > 0:
                self._pass_over(block, passed, start)
                passed = end
                self._open_window(raw, inside if live else ())
                yield from self._cut(raw, base + start, inside)
                self._number += raw.endswith(b"\n")
            pos = end
        self._hits.end()
        self._pass_over(block, passed, stop)

    def _find_stretch(self, stretches: Stretches, block: bytes, start: int, stop: int) -> bytes:
        """Return, and count, the lines from `start` on that one by one would be told too."""
        many = stretches.find(block, start, stop, partial(self._caps.search_without, stretches.common))
        if not many:
            return b""
        emitted = self._emitted + count_lines(many, 0, len(many))
        if emitted > MAX_LINES or not self._caps.count_all(many, stretches.common):
            self._stretches = None  # a cap is reached in it: from here on line by line
            return b""
        self._emitted = emitted
        return many

    def _take_stretch(self, many: bytes, offset: int) -> Stretch:
        self._tail, self._tail_cut = b"", False
        stretch = Stretch(self._number, offset, many.decode("ascii"))
        self._number += count_lines(many, 0, len(many))
        return stretch

    def _open_window(self, raw: bytes, inside: Sequence[Match]) -> None:
        self._window -= 1
        if self._window < _FRAME_LINES and raw.find(_FRAME) >= 0:
            self._window = _FRAME_LINES  # a thousand frames, as of endless recursion, still end with an exception
        for index, _, _ in inside:
            anchor = self._anchors.anchors[index]
            if anchor.after > self._window and self._caps.is_told(index):
                self._window = anchor.after

    def _pass_over(self, block: bytes, pos: int, end: int) -> None:
        """Count the lines that nobody asked for, and keep the last of them for the end of the log."""
        if end <= pos:
            return
        self._number += count_lines(block, pos, end)
        if end - pos > TAIL_BYTES:
            self._tail, self._tail_cut = block[end - TAIL_BYTES : end], True
            return
        passed = self._tail + block[pos:end]
        self._tail_cut = self._tail_cut or len(passed) > TAIL_BYTES
        self._tail = passed[-TAIL_BYTES:]

    def _cut(self, raw: bytes, place: int, inside: Sequence[Match]) -> list[Line]:
        """Return the line of one segment; a carriage return starts it anew, as on a terminal."""
        self._tail, self._tail_cut = b"", False
        text = raw.rstrip(b"\r\n")
        if len(text) <= TEXT_BYTES and b"\r" not in text:
            self._emitted += 1
            return [self._line(place, text, hit=bool(inside))]
        return self._cut_pieces(text, place, sorted(start for _, start, _ in inside))

    def _cut_pieces(self, text: bytes, place: int, anchored_at: Sequence[int]) -> list[Line]:
        pieces: list[tuple[int, int]] = []
        piece_start = 0
        for piece in text.split(b"\r"):
            pieces.append((piece_start, piece_start + len(piece)))
            piece_start += len(piece) + 1
        last = max((i for i, (a, b) in enumerate(pieces) if text[a:b].strip()), default=0)
        lines: list[Line] = []
        for i, (start, stop) in enumerate(pieces):
            anchored = next((at for at in anchored_at if start <= at < stop), None)
            if anchored is None and i != last:
                continue
            begin = start if stop - start <= TEXT_BYTES else max(start, (anchored or start) - _TEXT_BEFORE)
            cut = text[begin : min(stop, begin + TEXT_BYTES)]
            lines.append(self._line(place + begin, cut, hit=anchored is not None))
        self._emitted += len(lines)
        return lines

    def _line(self, offset: int, raw: bytes, *, hit: bool) -> Line:
        text = clean(raw)
        if not may_have_prefixes(text, woven=self._woven):
            return Line(self._number, offset, text, hit=hit)
        prefixes = split_prefixes(text, woven=self._woven)
        return Line(self._number, offset, prefixes.text, prefixes.rank, prefixes.at, hit, prefixes.by_torch)

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


def _blocks(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Cut anew: a block, with its begin and end, ends with a line or, inside a line of many segments, with a segment.

    Chunks are not copied, apart from the lines that two of them share.
    """
    carry = b""
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            begin = chunk.index(b"\n") + 1 if carry else 0
            if carry:
                first = carry + chunk[:begin]
                yield first, 0, len(first)
            if begin < cut:
                yield chunk, begin, cut
            carry = chunk[cut:]
        else:
            carry += chunk
        del chunk  # see `LogScan.__iter__`
        if len(carry) >= SEGMENT_BYTES:
            cut = len(carry) // SEGMENT_BYTES * SEGMENT_BYTES
            yield carry, 0, cut
            carry = carry[cut:]
    if carry:
        yield carry, 0, len(carry)


def _segment_start(block: bytes, pos: int, at: int) -> int:
    """Return the start of the segment that holds `at`; `pos` is the start of one at or before it."""
    line_start = block.rfind(b"\n", pos, at) + 1 or pos
    return line_start + (at - line_start) // SEGMENT_BYTES * SEGMENT_BYTES


def _segment_end(block: bytes, pos: int, stop: int) -> int:
    newline = block.find(b"\n", pos, pos + SEGMENT_BYTES)
    return newline + 1 if newline >= 0 else min(pos + SEGMENT_BYTES, stop)
