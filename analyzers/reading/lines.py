"""What a scan hands on: a line of interest, or a stretch of lines that all say the same kind of thing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from analyzers.reading.clean import without_controls
from analyzers.records import dataclass

if TYPE_CHECKING:
    from datetime import datetime


class Line(NamedTuple):
    """A line of interest. `number` is 1-based and counts LF only; `offset` is in bytes from the start of the source.

    `text` has no colours, stamp or rank prefix; `rank` is that of the prefix, `at` (UTC) that of GitHub's stamp. A line
    with carriage returns gives several of these with the same number. `hit` tells an anchor's line from its company;
    `by_torch`: the rank is torch's own word ("[rankN]:"), not that of whoever wove the file.
    """

    number: int
    offset: int
    text: str
    rank: int | None = None
    at: datetime | None = None
    hit: bool = False
    by_torch: bool = False


@dataclass(frozen=True)
class Stretch:
    """Whole lines one after the other, ending in a line feed; `number` and `offset` are those of the first.

    `text` is ASCII and may have colours.
    """

    number: int
    offset: int
    text: str

    def lines(self) -> Iterator[Line]:
        """Yield them one by one."""
        offset = self.offset
        for number, raw_line in enumerate(self.text[:-1].split("\n"), self.number):
            yield Line(number, offset, without_controls(raw_line), hit=True)
            offset += len(raw_line) + 1

    def last(self, lines: int) -> list[tuple[int, str]]:
        """Return the number and text of so many of the last lines."""
        end = self.number + self.text.count("\n")
        texts = self.text[:-1].rsplit("\n", lines)[-lines:]
        return [(end - len(texts) + row, without_controls(text)) for row, text in enumerate(texts)]


@dataclass(frozen=True)
class Rest:
    """The last lines of a log, which no anchor asked for: nothing is in them that is looked for in all of it."""

    last: tuple[Line, ...]

    def lines(self) -> Iterator[Line]:
        """Yield them one by one."""
        return iter(self.last)


@dataclass(frozen=True)
class Alike:
    """Lines that may be handed on as a stretch: many are read in the time of one.

    `stretch` matches whole lines of ASCII, without prefixes and with nothing but colours to be cleaned off; `anchors`
    are the ones that they may hold, the first of them in the first 500 bytes of each.
    """

    stretch: re.Pattern[bytes]
    anchors: tuple[str, ...]
