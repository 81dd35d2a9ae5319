"""What NCCL's watchdog, gloo and the debug wrappers of torch.distributed say about collectives that did not meet.

Lines of PyTorch 2.1 to 2.13 (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp, gloo).
"""

from __future__ import annotations

import re
from enum import StrEnum

from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import dataclass, replace

#: glog's head: level, month and day, time with nanoseconds, file. The year is not in it.
_GLOG = pattern(r"^\[?[WEIF](?P<month>\d{1,2}?)(?P<day>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d(?:\.\d+)?) ")
#: Other clocks in the logs: training.py's "datetime: 2026-..." and "[2026-... iteration", NCCL's, Python logging's.
_DATE = pattern(
    r"(?:^\[?|datetime: |^ \[)\d{4}-(?P<month>\d\d)-(?P<day>\d\d)[ T](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d(?:\.\d+)?)"
)
#: A line begins with one of these if it begins with a clock.
_CLOCK_STARTS = "[ 0123456789WEIF"
#: So many lines that may begin with a clock are kept until they are read.
_CLOCK_LINES = 64
_GROUP = pattern(
    r"\[PG (?:ID )?(?P<id>\d+)(?: PG GUID (?P<guid>[^ \]]+))?(?: \((?P<name>[^)]{0,400})\))? ?Rank (?P<rank>\d+)\]"
)
_WATCHDOG = pattern(
    r"\[Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<seq>\d+), "
    r"OpType=(?P<op>\w+)(?:, NumelIn=(?P<numel_in>\d+), NumelOut=(?P<numel_out>\d+))?"
)
_STATUS = pattern(
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)"
)
_BARRIER = pattern(r"Rank (?P<rank>\d+) failed to pass monitoredBarrier in (?P<ms>\d+) ms")
_BARRIER_MANY = pattern(r"Ranks (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier")
_FINGERPRINT = pattern(
    r"Rank (?P<rank>\d+) is running collective: (?:CollectiveFingerPrint\()?SequenceNumber=?\D*(?P<seq>\d+), ?"
    r"(?P<what>OpType=\w+(?:, TensorShape=\[[^\]]*\])?(?:, TensorDtypes=[\w, ]+?)?)(?=[,)])"
)

#: A line that holds none of these says nothing of a collective.
WORDS = ("Watchdog caught", "ast enqueued")


class Kind(StrEnum):
    """What a line says about a collective."""

    TIMEOUT = "timeout"  # this rank waited in it until the watchdog ended it
    STATUS = "status"  # how far this rank came
    BARRIER = "barrier"  # names the ranks that did not arrive
    MISMATCH = "mismatch"  # this rank's collective is not the others'


@dataclass(frozen=True)
class CollectiveEvent:
    """One such line. `signature` is the operation with its sizes; `when` is seconds since the start of the year."""

    kind: Kind
    line: int
    offset: int
    text: str
    group: str = ""
    seq: int | None = None
    signature: str = ""
    enqueued: int | None = None
    completed: int | None = None
    missing: tuple[int, ...] = ()
    when: float | None = None


class CollectiveReader:
    """Feed it the lines of one rank's stream in any order."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.events: list[CollectiveEvent] = []

    def feed(self, line: Line) -> bool:
        """Take one line; say whether it is about a collective that failed."""
        event = _read(line)
        if event is None:
            return False
        last = self.events[-1] if self.events else None
        if last is not None and last.kind is Kind.TIMEOUT and not last.group and event.group:
            self.events[-1] = replace(last, group=event.group)  # the watchdog's next line names the process group
        self.events.append(event)
        return True


def glog_time(text: str) -> float | None:
    """Return the time of a glog line in seconds, as if all months had 31 days: only differences mean something."""
    return _seconds(_GLOG.match(text))


def clock(text: str) -> float | None:
    """Return the time of any line that has one, on the same scale as `glog_time`."""
    head = text[:80]
    if head[:1] not in _CLOCK_STARTS and "datetime: " not in head:  # most lines have none, and every line is asked
        return None
    return _seconds(_GLOG.match(text) or _DATE.search(head))


class LastClock:
    """The time of the last line that has one: lines are kept, and read from the last one back when it is asked for."""

    def __init__(self) -> None:
        """Begin with no line."""
        self._time: float | None = None
        self._texts: list[str] = []

    def feed(self, text: str) -> None:
        """Take one line."""
        if text[:1] in _CLOCK_STARTS or "datetime: " in text[:80]:
            self._texts.append(text)
            if len(self._texts) >= _CLOCK_LINES:
                self.read()

    def read(self) -> float | None:
        """Return the time, as `clock` does; None before any line had one."""
        times = (time for text in reversed(self._texts) if (time := clock(text)) is not None)
        self._time = next(times, self._time)
        self._texts.clear()
        return self._time


def _seconds(stamp: re.Match[str] | None) -> float | None:
    if stamp is None:
        return None
    days = int(stamp["month"]) * 31 + int(stamp["day"])
    return ((days * 24 + int(stamp["h"])) * 60 + int(stamp["m"])) * 60 + float(stamp["s"])


def read_mismatch(text: str, rank: int | None) -> str | None:
    """Return the signature of the reader's own collective from the debug wrapper's message, None if it is not one."""
    found = list(_FINGERPRINT.finditer(text))
    own = [match for match in found if rank is None or int(match["rank"]) == rank] or found
    return own[0]["what"] if own else None


def read_missing(text: str) -> tuple[int, ...]:
    """Return the ranks that a monitored barrier names as not arrived."""
    if "monitoredBarrier" not in text:
        return ()
    if many := _BARRIER_MANY.search(text):
        return tuple(sorted(int(rank) for rank in many["ranks"].split(",")))
    one = _BARRIER.search(text)
    return (int(one["rank"]),) if one else ()


def _read(line: Line) -> CollectiveEvent | None:
    text = line.text
    if "Watchdog caught" in text and (watchdog := _WATCHDOG.search(text)):
        size = f"({watchdog['numel_in']}, {watchdog['numel_out']})" if watchdog["numel_in"] else ""
        again = "terminated with exception" in text or "what():" in text
        return CollectiveEvent(
            Kind.STATUS if again else Kind.TIMEOUT,
            line.number,
            line.offset,
            text,
            group=_group(text),
            seq=int(watchdog["seq"]),
            signature=watchdog["op"] + size,
            when=glog_time(text),
        )
    if "ast enqueued" in text and (status := _STATUS.search(text)):
        return CollectiveEvent(
            Kind.STATUS,
            line.number,
            line.offset,
            text,
            group=_group(text),
            enqueued=int(status["enqueued"]),
            completed=int(status["completed"]),
            when=glog_time(text),
        )
    return None


def _group(text: str) -> str:
    found = _GROUP.search(text)
    return (found["guid"] or found["id"]) if found else ""
