"""Everything one log says about each rank in it: the parsers side by side on one stream of lines.

A line goes to the first parser that knows it; what none knows is held against the rules.
"""

from __future__ import annotations

from analyzers.model import Source
from analyzers.parsers.collectives import CollectiveReader, LastClock
from analyzers.parsers.native import NativeReader
from analyzers.parsers.pytest_ids import PLAIN_RESULTS
from analyzers.parsers.pytest_report import PytestReader
from analyzers.parsers.readings import LogReading, Mark, StreamReading
from analyzers.parsers.torchrun import LauncherReader, LauncherReport
from analyzers.parsers.tracebacks import Trace, TracebackReader
from analyzers.patterns import pattern
from analyzers.reading.layout import ERROR_FILE, JUNIT, Kind, Place
from analyzers.reading.scan import Anchor, Anchors, Line, LogScan, Stretch
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

#: The last lines with text are kept for what they may tell; cutting the list is put off, as lines are many.
_TAIL, _KEPT = 3, 64

_PROGRESS = pattern(r"\biteration\s+\d+/\s*\d+ \|")
_WORLD = pattern(r"\brank: (?P<rank>\d{1,6}), world_size: (?P<of>\d{1,6})\b|^using world size: (?P<all>\d{1,6})\b")
#: The store's own words on a time-out: "3/4 clients joined".
_JOINED = pattern(r"\b\d{1,6}/(?P<of>\d{1,6}) clients joined\b")
_DONE = pattern(r"\[after training is done\]|^\s*exiting program at iteration|^\[exiting program")
_USAGE = pattern(
    r"^(?:\S.{0,60}?: error: unrecognized arguments: |ERROR: (?:(?:file or directory )?not found: "
    r"|Error importing plugin |Missing required plugins: |Wrong expression passed to '"
    r"|\S+\.(?:toml|ini|cfg): )"
    r"|(?:\S{1,60}\.py|pytest|py\.test|python -m pytest): error: ).+"
)


class _Stream:
    """The parsers of one rank's stream."""

    def __init__(self, place: Place, rank: int | None, rules: RuleSet) -> None:
        self.reading = StreamReading(place.name, place.kind, place.stream, rank)
        self._rules = rules
        self._pytest = PytestReader()
        self._traces = TracebackReader()
        self._native = NativeReader()
        self._collectives = CollectiveReader()
        self._clock = LastClock()

    def feed(self, line: Line) -> None:
        reading, text = self.reading, line.text
        reading.lines = line.number
        reading.hooked = reading.hooked or line.by_torch
        self._clock.feed(text)
        if text.strip():
            reading.tail.append((line.number, text))
            if len(reading.tail) > _KEPT:
                del reading.tail[:-_TAIL]
        timing_out = self._native.timing_out or "+ Timeout +" in text
        if self._pytest.feed(line) and not timing_out and not ("Fatal Python error: " in text and ".py::" in text):
            return  # all but a crash that is told behind the name of the test that it ended
        if not timing_out and self._feed_traces(line):
            return
        self._collectives.feed(line)
        if not self._native.feed(line) and text:
            self._note(line, text)

    def feed_part(self, part: Line | Stretch) -> None:
        """Take a line, or many of tests that did not fail: these change nothing but pytest's own state."""
        if isinstance(part, Line):
            self.feed(part)
        elif self._native.timing_out or not self._pytest.feed_results(part):
            for line in part.lines():
                self.feed(line)
        else:
            self._pass(part)

    def _pass(self, stretch: Stretch) -> None:
        last = stretch.last(_TAIL)
        self.reading.lines = last[-1][0]
        self.reading.tail.extend(last)

    def _feed_traces(self, line: Line) -> bool:
        chains = len(self._traces.chains)
        if not self._traces.feed(line):
            return False
        if len(self._traces.chains) > chains:
            self.reading.during.append(self._pytest.current_id)
        return True

    def _note(self, line: Line, text: str) -> None:
        """A line that no parser claims: how far the rank came, or what a rule knows."""
        reading = self.reading
        if "iteration" in text and _PROGRESS.search(text):
            reading.progress_line = line.number
        elif "world" in text and (world := _WORLD.search(text)):
            reading.world = max(reading.world, int(world["of"] or world["all"]))
            reading.said_rank = int(world["rank"]) if world["rank"] else reading.said_rank
        elif ("training" in text or "exiting" in text) and _DONE.search(text):
            reading.done_line = line.number
        elif ("error: " in text or text.startswith("ERROR: ")) and _USAGE.match(text):
            reading.usage = reading.usage or line
        elif (match := self._rules.match(text, where=Where.RANK)) is not None:
            reading.marks.append(Mark(match, line.number, line.offset, text, self._pytest.current_id))

    def end(self, lines: int) -> StreamReading:
        self._pytest.end()
        reading = self.reading
        reading.chains, reading.crashes = self._traces.chains, self._native.crashes
        reading.sessions, reading.collectives = self._pytest.sessions, self._collectives.events
        reading.seen, reading.clock = self._traces.seen, self._clock.read()
        joined = (_JOINED.search(trace.message) for chain in reading.chains for trace in chain)
        reading.world = max([reading.world, *(int(told["of"]) for told in joined if told)])
        reading.lines = lines if reading.kind is Kind.RANK else reading.lines
        del reading.tail[:-_TAIL]
        return reading


def _stands_alone(rule: Rule) -> bool:
    """Whether a rule's lines must be looked for: those of exceptions are met in tracebacks and reports anyway."""
    in_traceback = "(?P<type>" in rule.pattern and "(?:(?P<type>" not in rule.pattern
    return rule.where is not Where.JOB and not in_traceback and len(rule.hint) >= _HINT_LENGTH


class RankLogReader:
    """Reads logs one after the other with one set of rules; the anchors are compiled once."""

    def __init__(self, rules: RuleSet) -> None:
        """Compile the anchors: the parsers' own, and the rules' hints that are rare enough."""
        self._rules = rules
        hints = {rule.hint for rule in rules if _stands_alone(rule)}
        self.anchors = Anchors([*_PARSER_ANCHORS, *(Anchor(hint) for hint in sorted(hints))], rules.remember)

    def read(self, source: Source, place: Place) -> LogReading:
        """Read one log, or one document beside the logs, once."""
        if place.stream in DOCUMENTS:
            return _read_document(source, place)
        woven = place.kind in (Kind.WOVEN, Kind.NCCL)
        own_rank = place.local_rank if place.kind is Kind.RANK else None
        scan = LogScan(source, self.anchors, woven=woven, alike=PLAIN_RESULTS if own_rank is not None else None)
        launcher = LauncherReader()
        streams: dict[int | None, _Stream] = {}
        prefix_rank: int | None = None
        for part in scan.parts():
            rank = own_rank if isinstance(part, Stretch) else _rank_of(part, place)
            if isinstance(part, Line):
                if place.kind is Kind.RANK and prefix_rank is None:
                    prefix_rank = part.rank
                if rank is None and launcher.feed(part):
                    continue
            if rank not in streams:
                streams[rank] = _Stream(place, rank, self._rules)
            streams[rank].feed_part(part)
        readings = tuple(streams[key].end(scan.lines) for key in sorted(streams, key=_none_last))
        if place.kind is Kind.RANK and prefix_rank is None and readings:
            prefix_rank = readings[0].said_rank
        report = launcher.report()
        told = tuple(_from_error_file(place, rank, chains) for rank, chains in report.chains.items())
        return LogReading(place, readings + told, report, scan.lines, scan.size_bytes, prefix_rank, torn=scan.torn)


#: NCCL writes "host:pid:tid [device] ...": the device is the local rank.
_NCCL_DEVICE = pattern(r"^(?:\[[\d: -]+\] )?\S+:\d+:\d+ \[(?P<device>\d+)\]")


def _rank_of(line: Line, place: Place) -> int | None:
    if place.kind is Kind.RANK:
        return place.local_rank
    if line.rank is None and (nccl := _NCCL_DEVICE.match(line.text)):
        return int(nccl["device"])
    return line.rank


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
