"""Everything one log says: what interests in it, and which rank says it."""

from __future__ import annotations

from analyzers.model import Source
from analyzers.parsers.pytest_ids import PLAIN_RESULTS
from analyzers.parsers.readings import LogReading, StreamReading
from analyzers.parsers.stream import Stream, Words
from analyzers.parsers.torchrun import LauncherReader, LauncherReport
from analyzers.parsers.tracebacks import Trace
from analyzers.patterns import pattern
from analyzers.reading.layout import ERROR_FILE, JUNIT, Kind, Place
from analyzers.reading.scan import Anchor, Anchors, Line, LogScan, Rest
from analyzers.rules import Rule, RuleSet, Where

#: Literals that the parsers need, with the lines after them that belong to what they announce.
_PARSER_ANCHORS = (
    Anchor("Traceback (most recent call last)", after=300, most=400),
    Anchor("The above exception was the direct cause", after=3, most=400),
    Anchor("During handling of the above exception", after=3, most=400),
    Anchor("Exception ignored in", after=2, most=200),
    Anchor("--- Logging error ---", after=2, most=200),
    Anchor("Exception in thread ", after=2, most=200),
    Anchor("terminated with the following error", after=2, most=200),
    Anchor("Fatal Python error", after=150, most=20),
    Anchor(".py::", most=100_000),
    Anchor("PASSED", most=100_000),
    Anchor("FAILED", most=20_000),
    Anchor("SKIPPED", most=100_000),
    Anchor("XFAIL", most=20_000),
    Anchor("XPASS", most=20_000),
    Anchor("ERROR"),
    Anchor(" FAILURES =", after=20_000, most=20),
    Anchor(" ERRORS =", after=20_000, most=20),
    Anchor("short test summary info", after=2_000, most=20),
    Anchor("rootdir: ", most=50),
    Anchor("s ===", most=1_000),
    Anchor(") ===", most=1_000),
    Anchor("m ===", most=1_000),  # the same in colours
    Anchor("ImportError while loading conftest", after=200, most=10),
    Anchor("test session starts", after=10, most=50),
    Anchor("error: unrecognized arguments", after=3, most=10),
    Anchor(".py: error: ", most=20),
    Anchor("ERROR: usage: ", after=3, most=20),
    Anchor("!!! ", most=100),
    Anchor("world_size: ", most=20),
    Anchor("using world size: ", most=20),
    Anchor("[rank", most=3),
    Anchor("+ Timeout +", after=150, most=10),
    Anchor("Timeout (", after=150, most=10),
    Anchor("Watchdog caught collective", most=200),
    Anchor("ast enqueued", most=200),
    Anchor("monitoredBarrier", most=50),
    Anchor("terminate called", after=3, most=20),
    Anchor("after training is done", most=20),
    Anchor("| consumed samples", most=3, again=True),
    Anchor("NCCL WARN", most=200),
    Anchor("exitcode", most=500),
    Anchor("Root Cause (first", after=10, most=20),
    Anchor("closing signal SIG", most=500),
    Anchor("rank      : ", most=500),
    Anchor("attempt restart", most=20),
    Anchor("Assertion `", most=50),
    Anchor("Exiting as requested by another rank", most=10),
)
DOCUMENTS = (ERROR_FILE, JUNIT)
#: A rule's hint is searched for in every byte only if it is this long: shorter ones stand in half of all lines.
_HINT_LENGTH = 10


def _stands_alone(rule: Rule) -> bool:
    """Whether a rule's lines must be looked for: those of exceptions are met in tracebacks and reports anyway."""
    in_traceback = "(?P<type>" in rule.pattern and "(?:(?P<type>" not in rule.pattern
    return rule.where is not Where.JOB and not in_traceback and len(rule.hint) >= _HINT_LENGTH


class RankLogReader:
    """Reads logs one after the other with one set of rules; the anchors are compiled once."""

    def __init__(self, rules: RuleSet) -> None:
        """Compile the anchors: the parsers' own, and the rules' hints that are rare enough."""
        self._rules = rules
        self._words = Words(rules)
        hints = {rule.hint for rule in rules if _stands_alone(rule)}
        self.anchors = Anchors([*_PARSER_ANCHORS, *(Anchor(hint) for hint in sorted(hints))], rules.remember)

    def read(self, source: Source, place: Place) -> LogReading:
        """Read one log, or one document beside the logs, once."""
        if place.stream in DOCUMENTS:
            return _read_document(source, place)
        if place.kind is Kind.RANK and place.local_rank is not None:
            return self._read_own(source, place, place.local_rank)
        scan = LogScan(source, self.anchors, woven=place.kind in (Kind.WOVEN, Kind.NCCL))
        launcher = LauncherReader()
        streams: dict[int | None, Stream] = {}
        for line in scan:
            rank = line.rank
            if rank is None and (nccl := _NCCL_DEVICE.match(line.text)):
                rank = int(nccl["device"])
            if rank is None and launcher.feed(line):
                continue
            if rank not in streams:
                streams[rank] = Stream(place, rank, self._rules)
            streams[rank].feed(line)
        readings = tuple(streams[key].end(scan.lines) for key in sorted(streams, key=_none_last))
        report = launcher.report()
        told = tuple(_from_error_file(place, rank, chains) for rank, chains in report.chains.items())
        return LogReading(place, readings + told, report, scan.lines, scan.size_bytes, torn=scan.torn)

    def _read_own(self, source: Source, place: Place, rank: int) -> LogReading:
        """Read the log that one rank has for itself."""
        scan = LogScan(source, self.anchors, alike=PLAIN_RESULTS)
        stream = Stream(place, rank, self._rules)
        told_rank: int | None = None
        for part in scan.parts():
            if isinstance(part, Rest):
                stream.feed_rest(part, self._words)
                lines = part.last
            else:
                stream.feed_part(part)
                lines = (part,) if isinstance(part, Line) else ()
            if told_rank is None:
                told_rank = next((line.rank for line in lines if line.rank is not None), None)
        readings = (stream.end(scan.lines),) if scan.lines else ()
        if told_rank is None and readings:
            told_rank = readings[0].said_rank
        return LogReading(place, readings, LauncherReport(), scan.lines, scan.size_bytes, told_rank, torn=scan.torn)


#: NCCL writes "host:pid:tid [device] ...": the device is the local rank.
_NCCL_DEVICE = pattern(r"^(?:\[[\d: -]+\] )?\S+:\d+:\d+ \[(?P<device>\d+)\]")


def _from_error_file(place: Place, rank: int, chains: list[list[Trace]]) -> StreamReading:
    """What the launcher quotes of a rank's error file: the exception that ended it."""
    for chain in chains:
        chain[0].uncaught = True
    end = chains[-1][-1].end
    return StreamReading(
        place.name, Kind.LAUNCHER, "stderr", rank, chains=chains, during=[None] * len(chains), lines=end, seen=end
    )


def _read_document(source: Source, place: Place) -> LogReading:
    """Read what few artifacts have; its readers are loaded for it alone."""
    if place.stream == ERROR_FILE:
        from analyzers.parsers.error_file import read_error_file as read  # noqa: PLC0415
    else:
        from analyzers.parsers.junit import read_junit as read  # noqa: PLC0415
    reading, size = read(source, place)
    known = reading.chains or reading.sessions
    return LogReading(place, (reading,) if known else (), LauncherReport(), reading.lines, size)


def _none_last(rank: int | None) -> tuple[bool, int]:
    return rank is None, rank or 0
