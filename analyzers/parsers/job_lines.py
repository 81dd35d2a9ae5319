"""The lines of a job's log: what the runner says, what its steps print, what the launched tasks print.

GitHub puts a stamp before each line and writes commands of the runner as "##[error]...", "##[group]..."; the launcher
of the tests (nemo-run over torchx) puts "task-1-0/0 " before each line of a task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from analyzers.model import Source
from analyzers.reading.clean import clean, split_prefixes
from analyzers.reading.scan import Line

#: Only this much of a line is looked at; no message of a tool is longer.
LINE_BYTES = 8 * 1024

_TASK = re.compile(r"(?:\d{4}-\S+Z )?[A-Za-z][\w.-]*-\d+/\d+ ")
_MARK = re.compile(r"##\[(?P<mark>error|warning|notice|group|endgroup|section|command|debug)\](?P<text>.*)")


@dataclass(frozen=True, slots=True)
class JobLine:
    """One line. `number` is 1-based, `offset` in bytes; `mark` is the runner's command ("error", "group" ...) or "".

    `task` tells the output of a launched task from that of a step; `rank` is that of the task's line, None if the line
    is the launcher's or a script's.
    """

    number: int
    offset: int
    text: str
    at: datetime | None
    mark: str = ""
    task: bool = False
    rank: int | None = None

    def plain(self) -> Line:
        """Return the line as the parsers of rank logs take it."""
        return Line(self.number, self.offset, self.text, self.rank, self.at, hit=True)


class JobLines:
    """Iterates once over a job's log, in bounded memory; then `lines` and `size_bytes` are final."""

    def __init__(self, source: Source) -> None:
        """Prepare; nothing is read yet."""
        self._source = source
        self.lines = 0
        self.size_bytes = 0

    def __iter__(self) -> Iterator[JobLine]:
        """Yield the lines; one with carriage returns gives one for each state of the terminal, all with its number."""
        rest, start, cut = b"", 0, False
        for chunk in self._source.chunks():
            pieces = (rest + chunk).split(b"\n")
            for raw in pieces[:-1]:
                self.lines += 1
                if not cut:
                    yield from _read(raw, self.lines, start)
                start += len(raw) + 1
                cut = False
            rest = pieces[-1]
            if len(rest) > LINE_BYTES:  # a line without end: tell its beginning now, pass over the rest
                if not cut:
                    yield from _read(rest, self.lines + 1, start)
                start, rest, cut = start + len(rest), b"", True
        if rest and not cut:
            yield from _read(rest, self.lines + 1, start)
        self.lines += bool(rest or cut)
        self.size_bytes = start + len(rest)


def _read(raw: bytes, number: int, offset: int) -> Iterator[JobLine]:
    states = raw[:LINE_BYTES].rstrip(b"\r").split(b"\r")
    at, task, rank = None, False, None
    for place, state in enumerate(states):
        text = clean(state)
        if place == 0:
            task = _TASK.match(text) is not None
        prefixes = split_prefixes(text)
        at, rank, text = prefixes.at or at, prefixes.rank if prefixes.rank is not None else rank, prefixes.text
        if not text and len(states) > 1:
            continue
        found = None if task else _MARK.match(text)
        if found:
            yield JobLine(number, offset, found["text"], at, found["mark"])
        else:
            yield JobLine(number, offset, text, at, task=task, rank=rank)
