"""The lines of a job's log: what the runner says, what its steps print, what the launched tasks print.

GitHub puts a stamp before each line and writes commands of the runner as "##[error]...", "##[group]..."; the launcher
of the tests (nemo-run over torchx) puts "task-1-0/0 " before each line of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from analyzers.model import Source
from analyzers.patterns import pattern
from analyzers.reading.clean import clean
from analyzers.reading.scan import Line

#: Only this much of a line is looked at; no message of a tool is longer.
LINE_BYTES = 8 * 1024

#: GitHub's stamp, the task, and the rank that torchrun's tee ("[default3]:") or torch ("[rank3]:") names.
_PREFIXES = pattern(
    rb"(?:\xef\xbb\xbf)?(?:(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?)?"
    rb"(?P<task>[A-Za-z][\w.-]{0,60}-\d{1,4}/\d{1,4} )?(?:\[(?:default|rank)(?P<rank>\d{1,6})\]: ?)?"
)
_MARK = pattern(r"##\[(?P<mark>error|warning|notice|group|endgroup|section|command|debug)\](?P<text>.*)")


class JobLine(NamedTuple):
    """One line. `number` is 1-based, `offset` in bytes; `mark` is the runner's command ("error", "group" ...) or "".

    `stamp` is GitHub's, as it stands there; `task` tells the output of a launched task (its launcher, its scripts) from
    that of a step.
    """

    number: int
    offset: int
    text: str
    stamp: bytes = b""
    mark: str = ""
    task: bool = False

    @property
    def at(self) -> datetime | None:
        """The time of GitHub's stamp, in UTC. Read only for the few lines that somebody tells about."""
        try:
            return datetime.fromisoformat(self.stamp.decode()) if self.stamp else None
        except ValueError:  # the look of a stamp, and a month that no year has
            return None

    def plain(self) -> Line:
        """Return the line as the parsers of rank logs take it."""
        return Line(self.number, self.offset, self.text, hit=True)


class JobLines:
    """Iterates once over a job's log, in bounded memory; then `lines` and `size_bytes` are final.

    Lines of the ranks are left out: they are a copy of what stands in the artifact, for rank 0 only.
    """

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
    raw = raw[:LINE_BYTES]
    prefixes = _PREFIXES.match(raw)
    if prefixes is None:
        return
    stamp, task_name, rank = prefixes.groups(b"")
    if rank:
        return
    task = bool(task_name)
    for state in raw[prefixes.end() :].rstrip(b"\r").split(b"\r"):
        text = clean(state)
        found = _MARK.match(text) if text.startswith("##[") and not task else None
        if found:
            yield JobLine(number, offset, found["text"], stamp, found["mark"])
        else:
            yield JobLine(number, offset, text, stamp, task=task)
