"""Everything one log says about one rank: the parsers side by side on its lines.

A line goes to the first parser that knows it; what none knows is held against the rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from analyzers.parsers import collectives, native, pytest_report, tracebacks
from analyzers.parsers.collectives import CollectiveReader, LastClock
from analyzers.parsers.native import NativeReader
from analyzers.parsers.pytest_report import RULES, PytestReader
from analyzers.parsers.readings import Mark, StreamReading
from analyzers.parsers.tracebacks import TracebackReader
from analyzers.patterns import pattern
from analyzers.reading.layout import Kind, Place
from analyzers.reading.literals import complete_search
from analyzers.reading.scan import Line, Rest, Stretch
from analyzers.rules import RuleSet, Where

_WORDS = (
    *(pytest_report.WORDS + tracebacks.WORDS + native.WORDS + collectives.WORDS),
    *("world_size: ", "using world size: ", "after training is done", "exiting program", "error: ", "ERROR: "),
)
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


class Words:
    """Without one of these a line says nothing to a parser that waits for its own words, nor to any rule."""

    def __init__(self, rules: RuleSet) -> None:
        """Compile the words."""
        self._find_hints = rules.find_hints
        of_ranks = {rule.hint for rule in rules if rule.where is not Where.JOB}
        self._of_ranks = frozenset(place for place, hint in enumerate(rules.hints) if hint in of_ranks)
        self._find_words = complete_search([word.encode() for word in _WORDS])

    def said_in(self, lines: Sequence[Line]) -> set[int]:
        """Return the places of the lines that hold one."""
        raw = [line.text.encode(errors="replace") for line in lines]
        ends = list(accumulate(len(one) + 1 for one in raw))
        text = b"\n".join(raw)
        said = {bisect_right(ends, at) for _, at, _ in self._find_words(text)}
        said.update(bisect_right(ends, at) for hint, at, _ in self._find_hints(text) if hint in self._of_ranks)
        said.update(place for place, line in enumerate(lines) if line.text[:1] in RULES)
        return said


class Stream:
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

    def feed_rest(self, rest: Rest, words: Words) -> None:
        """Take the last lines of the log: as a rule none of them says anything but how far the rank came, and when."""
        spoken = words.said_in(rest.last)
        for place, line in enumerate(rest.last):
            if place in spoken or line.by_torch or not self._is_idle:
                self.feed(line)
            else:
                self._pass_line(line)

    @property
    def _is_idle(self) -> bool:
        """Whether a line without any of `Words` changes nothing in any parser."""
        return self._pytest.is_idle and self._traces.is_idle and self._native.is_idle

    def _pass_line(self, line: Line) -> None:
        reading, text = self.reading, line.text
        reading.lines = line.number
        self._clock.feed(text)
        self._traces.pass_over(line)
        if text.strip():
            reading.tail.append((line.number, text))
        if "iteration" in text and _PROGRESS.search(text):
            reading.progress_line = line.number

    def _pass(self, stretch: Stretch) -> None:
        last = stretch.last(_TAIL)
        self.reading.lines = last[-1][0]
        self.reading.tail.extend(last)

    def _feed_traces(self, line: Line) -> bool:
        chains = len(self._traces.chains)
        if not self._traces.feed(line):
            return False
        self.reading.during += [self._pytest.current_id] * (len(self._traces.chains) - chains)
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
