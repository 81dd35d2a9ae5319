"""What a log says, rank by rank: the form in which the parsers hand it to the verdict."""

from __future__ import annotations

from analyzers.parsers.collectives import CollectiveEvent
from analyzers.parsers.native import Crash
from analyzers.parsers.pytest_report import Session
from analyzers.parsers.torchrun import LauncherReport
from analyzers.parsers.tracebacks import Trace
from analyzers.reading.layout import Kind, Place
from analyzers.reading.scan import Line
from analyzers.records import dataclass, field
from analyzers.rules import RuleMatch


@dataclass(frozen=True)
class Mark:
    """A line that a rule knows; `text` is all of it, `during` pytest's test at hand."""

    match: RuleMatch
    line: int
    offset: int
    text: str
    during: str | None = None


@dataclass
class StreamReading:
    """What one log says about one rank: `lines` is the number of its last line, `seen` counts those that were read."""

    name: str
    kind: Kind
    stream: str
    rank: int | None
    chains: list[list[Trace]] = field(default_factory=list)
    #: pytest's test at hand when the chain of the same index was printed.
    during: list[str | None] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    collectives: list[CollectiveEvent] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    usage: Line | None = None  # the command line was not understood, by pytest or by a script's argparse
    hooked: bool = False  # a line began with "[rankN]": torch's hook marks what nobody catches
    said_rank: int | None = None  # "with rank: 3"
    world: int = 0  # number of ranks, as this one was told
    done_line: int = 0  # "after training is done"
    progress_line: int = 0  # the last iteration or test result
    lines: int = 0
    seen: int = 0
    clock: float | None = None  # of the last line seen that has a time
    tail: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class LogReading:
    """One log: a reading per rank, the launcher's part, rules met outside of any rank, and how much was read."""

    place: Place
    streams: tuple[StreamReading, ...]
    launcher: LauncherReport
    lines: int
    size_bytes: int
    prefix_rank: int | None = None
    torn: bool = False  # it ends in the middle of a line
