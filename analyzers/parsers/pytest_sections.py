"""The FAILURES and ERRORS sections of pytest's report: per test, the exception that counts and where it was raised."""

from __future__ import annotations

import re

from analyzers.parsers.chains import primary
from analyzers.parsers.frames import Frame
from analyzers.parsers.tracebacks import Link, Trace, TracebackReader
from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import dataclass, field

_TITLE = pattern(r"^_+ (?P<title>\S.*?) _+$")
_PLACE = pattern(r"^(?P<path>[^\s:]+(?:\.py|>|\.pyx)):(?P<line>\d+): ?(?P<what>.*)$")
_ERROR = pattern(r"^E(?: {1,}(?P<text>.*))?$")
_CAPTURED = pattern(r"^-{3,} ?(?:Captured|live log)")
_WHEN = pattern(r"^ERROR (?:at (?P<when>setup|teardown) of |(?P<collecting>collecting ))(?P<name>.*)$")
_TYPE = pattern(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:?$)")
_SYNTAX_FRAME = pattern(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+)')
_SYNTAX = pattern(r"^(?:\w+\.)*(?:SyntaxError|IndentationError|TabError)\b")
_IN = pattern(r"^in (?P<function>.+)$")
#: A message is its first lines and its last ones: a compiler shows much code, and says why below it.
_FIRST_LINES = 8
_MESSAGE_LINES = 12


@dataclass
class Report:
    """One test's (or file's) part of the report. `when` is call, setup, teardown or collecting; `title` may be ""."""

    title: str
    when: str
    line: int
    chain: list[Trace] = field(default_factory=list)
    node_id: str | None = None

    def primary(self, root: str | None) -> Trace | None:
        """Return the exception that counts, None if the report was cut off before it."""
        ended = [trace for trace in self.chain if trace.type or trace.message]
        return primary(ended, root) if ended else None


class SectionReader:
    """Reads the lines between a section's header and the next one."""

    def __init__(self) -> None:
        """Begin before the first report."""
        self.reports: list[Report] = []
        self._muted = False  # inside captured output
        self._trace: Trace | None = None
        self._lines: list[str] = []
        self._quoted: TracebackReader | None = None
        self._plain = TracebackReader()  # of `--tb=native`, and of groups, which pytest prints as Python does
        self._link = Link.NONE
        self._done = False  # the exception at hand has got its closing place
        self._heading = ""  # the first error line of a failure that has no title
        self._said: Line | None = None  # the first words of the report at hand

    @property
    def ended(self) -> bool:
        """Whether the report at hand has its error lines."""
        chain = self.reports[-1].chain if self.reports else []
        return bool(chain or self._plain.chains) or (self._trace is not None and bool(self._trace.at_line))

    def open(self, title: str, line: Line, *, when: str = "call", node_id: str | None = None) -> None:
        """Begin the report of a test."""
        self._end_report()
        self.reports.append(Report(title, when, line.number, node_id=node_id))
        self._muted = False

    def end(self) -> None:
        """The section ends."""
        self._end_report()

    def _end_report(self) -> None:
        self.close()
        plain, self._plain = self._plain.chains, TracebackReader()
        said, self._said = self._said, None
        if not self.reports or self.reports[-1].chain:
            return
        last = self.reports[-1]
        last.chain.extend(trace for chain in plain for trace in chain if trace.type)
        if said is not None and last.when == "collecting" and not last.chain:  # pytest's own refusal, in plain words
            words = Trace(said.number, message=said.text, at_line=said.number, end=said.number, offset=said.offset)
            last.chain.append(words)

    def feed(self, line: Line) -> None:
        """Take one line of the section."""
        text = line.text
        if (title := _TITLE.match(text)) and not text.startswith("_ _"):
            when = _WHEN.match(title["title"])
            if when is None:
                self.open(title["title"], line)
            else:
                self.open(when["name"], line, when="collecting" if when["collecting"] else when["when"])
        elif _CAPTURED.match(text):
            self.close()
            self._muted = True
        elif not self.reports or not self.reports[-1].title:
            self._add_crash_line(line, text)
        elif not self._muted:
            self._read(line, text)

    def _add_crash_line(self, line: Line, text: str) -> None:
        """`--tb=line` prints no titles: error lines (some versions), captured output, and then the place of it all."""
        if not self._muted and (error := _ERROR.match(text)):
            self._heading = self._heading or (error["text"] or "").strip()
            return
        place = _PLACE.match(text)
        said = place["what"].strip() if place is not None else ""
        if place is None or not said or said != (self._heading or ("" if self._muted else said)):
            return
        self._heading, self._muted = "", False
        frame = Frame(place["path"], int(place["line"]))
        trace = Trace(line.number, [frame], at_line=line.number, end=line.number, offset=line.offset)
        self.reports.append(Report("", "call", line.number))
        self._lines, self._quoted = [said], None
        self._settle(trace)

    def close(self) -> None:
        """End the exception at hand."""
        trace, self._trace = self._trace, None
        if trace is not None and self.reports:
            self._settle(trace)
        self._link, self._done = Link.NONE, False

    def _read(self, line: Line, text: str) -> None:
        self._said = self._said or (line if text.strip() else None)
        self._plain.feed(line)
        if text.startswith(("During handling of the above", "The above exception was the direct")):
            link = Link.CONTEXT if text.startswith("During") else Link.CAUSE
            self.close()
            self._link = link
        elif error := _ERROR.match(text):
            self._add_error(line, error["text"] or "")
        elif place := _PLACE.match(text):
            self._add_place(line, place)
        elif text.startswith("[XPASS(strict)]"):
            passed = Trace(line.number, type="Failed", message=text, at_line=line.number, offset=line.offset)
            self.reports[-1].chain.append(passed)

    def _at_hand(self, line: Line) -> Trace:
        if self._trace is None:
            self._trace = Trace(line.number, end=line.number, offset=line.offset, link=self._link)
            self._lines, self._quoted, self._done = [], None, False
        return self._trace

    def _add_error(self, line: Line, text: str) -> None:
        trace = self._at_hand(line)
        if not trace.at_line:
            trace.at_line, trace.offset = line.number, line.offset
        trace.end = line.number
        if "Traceback (most recent call last):" in text and self._quoted is None:
            self._quoted = TracebackReader()
        if self._quoted is not None:
            self._quoted.feed(Line(line.number, line.offset, text))
        if len(self._lines) < _MESSAGE_LINES:
            self._lines.append(text)
        elif text.strip():
            del self._lines[_FIRST_LINES]
            self._lines.append(text)

    def _add_place(self, line: Line, place: re.Match[str]) -> None:
        trace = self._at_hand(line)
        inner = _IN.match(place["what"])
        if trace.at_line and (inner or not place["what"]):
            self.close()  # a frame after the error lines is the next exception's
            trace = self._at_hand(line)
        trace.frames.append(Frame(place["path"], int(place["line"]), inner["function"] if inner else ""))
        if trace.at_line and place["what"]:
            trace.type = place["what"].strip()
            self.close()

    def _settle_syntax(self, trace: Trace) -> None:
        """A SyntaxError names its file before itself, with the code between."""
        frame = _SYNTAX_FRAME.match(self._lines[0]) if self._lines else None
        ends = [place for place, text in enumerate(self._lines) if _SYNTAX.match(text)]
        if frame is None or not ends:
            return
        trace.frames.append(Frame(frame["path"], int(frame["line"])))
        trace.at_line += ends[0]
        self._lines = self._lines[ends[0] :]

    def _settle(self, trace: Trace) -> None:
        """Give an exception its type and message, and hand it to the report; what it quotes comes behind it."""
        self._settle_syntax(trace)
        first = self._lines[0] if self._lines else ""
        named = _TYPE.match(first)
        if named and _names_type(named["type"], trace.type):
            trace.type = named["type"]
            rest = [named["message"] or "", *self._lines[1:]]
        else:
            rest = self._lines
            trace.type = trace.type or ("AssertionError" if first.startswith("assert ") else "")
        trace.message = "\n".join(rest).strip()
        if not trace.at_line:
            return  # frames without an error: cut off, or a place in the middle of the code shown
        chain = self.reports[-1].chain
        if trace.link is Link.CAUSE and not chain:
            chain += self._handed_on(trace)
        chain.append(trace)
        if self._quoted is not None:
            for quoted in (quoted for quotes in self._quoted.chains for quoted in quotes if quoted.type):
                quoted.link = Link.QUOTED
                chain.append(quoted)

    def _handed_on(self, trace: Trace) -> list[Trace]:
        """What a worker process sent back has no traceback object: pytest prints its text, as Python does."""
        ended = (one for chain in self._plain.chains for one in chain)
        return [one for one in ended if one.type and one.end < trace.start]


def _names_type(word: str, closing: str) -> bool:
    """Whether the first word of the error lines is the exception's class, given the class in the closing place."""
    if closing:
        said, closed = word.rpartition(".")[2], closing.rpartition(".")[2]
        return said == closed or ("." in word and said.startswith("_") and said.endswith(closed))  # numpy shows a base
    return "." in word or word[:1].isupper()
