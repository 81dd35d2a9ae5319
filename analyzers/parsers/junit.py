"""pytest's results as JUnit XML (`--junitxml`): read as one session, its reports as on the terminal.

A document with a DOCTYPE is refused: JUnit has none, and entities are how XML grows without bound.
Source: pytest 8 and 9, src/_pytest/junitxml.py (families xunit1 and xunit2).
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from analyzers.model import Source
from analyzers.parsers.pytest_report import Outcome, Session
from analyzers.parsers.pytest_sections import SectionReader
from analyzers.parsers.readings import StreamReading
from analyzers.patterns import pattern
from analyzers.reading.clean import clean
from analyzers.reading.layout import Place
from analyzers.reading.scan import Line

MAX_TEXT = 256 * 1024
_RESULTS = {"failure": "FAILED", "error": "ERROR", "skipped": "SKIPPED"}
_WHEN = pattern(r"failed on (?P<when>setup|teardown)|(?P<collecting>collection failure)")


class RefusedError(ValueError):
    """The document declares what no test report needs."""


def read_junit(source: Source, place: Place) -> tuple[StreamReading, int]:
    """Return the results as a reading, and how many bytes were read; what follows a broken place is left out."""
    reader, size = _Reader(), 0
    try:
        for chunk in source.chunks():
            size += len(chunk)
            reader.feed(chunk)
        reader.end()
    except (expat.ExpatError, RefusedError):
        reader.broken = True
    reading = StreamReading(place.name, place.kind, place.stream, place.local_rank)
    reading.sessions = [reader.session()] if reader.outcomes else []
    reading.lines = reading.seen = reader.last_line
    return reading, size


class _Reader:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._stop
        self._parser.CharacterDataHandler = self._say
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._section = SectionReader()
        self._case: Outcome | None = None
        self._bad: tuple[str, int, str] | None = None  # when, line, what was said
        self._text: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.broken = False
        self.last_line = 0

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk, False)

    def end(self) -> None:
        self._parser.Parse(b"", True)

    def session(self) -> Session:
        self._section.end()
        results = [outcome.result for outcome in self.outcomes.values()]
        counts = {"failed": results.count("FAILED"), "error": results.count("ERROR"), "passed": results.count("PASSED")}
        session = Session(1, outcomes=self.outcomes, reports=self._section.reports, reporting=True)
        session.counts = None if self.broken else counts
        return session

    def _refuse(self, *_: Any) -> None:
        raise RefusedError("a DOCTYPE")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.last_line = self._parser.CurrentLineNumber
        if name == "testcase":
            node_id = _node_id(attributes)
            self._case = Outcome(node_id, self.last_line, self._parser.CurrentByteIndex, "PASSED")
            self.outcomes[node_id] = self._case
        elif name in _RESULTS and self._case is not None:
            self._case.result = _RESULTS[name]
            told = _WHEN.search(attributes.get("message", ""))
            when = "call" if told is None else "collecting" if told["collecting"] else told["when"]
            self._bad, self._text = (when, self.last_line, attributes.get("message", "")), []

    def _say(self, text: str) -> None:
        if self._bad is not None and sum(map(len, self._text)) < MAX_TEXT:
            self._text.append(text)

    def _stop(self, name: str) -> None:
        if name not in _RESULTS or self._bad is None or self._case is None:
            return
        (when, line, _), self._bad = self._bad, None
        if name == "skipped":
            return
        opened = Line(line, self._case.offset, self._case.node_id)
        self._section.open(self._case.node_id, opened, when=when, node_id=self._case.node_id)
        for number, text in enumerate("".join(self._text).split("\n"), start=line):
            self._section.feed(Line(number, self._case.offset, clean(text.encode("utf-8", "replace")), hit=True))


def _node_id(attributes: dict[str, str]) -> str:
    """Put the id together from `classname` and `name`; only the older family names the file as well."""
    dotted = attributes.get("classname", "")
    file = attributes.get("file") or ""
    module = file.removesuffix(".py").replace("/", ".")
    if file and (dotted == module or dotted.startswith(module + ".")):
        classes = dotted[len(module) + 1 :].split(".") if dotted != module else []
    else:
        parts = dotted.split(".")
        first = next((place for place, part in enumerate(parts) if part[:1].isupper()), len(parts))
        file, classes = "/".join(parts[:first]) + ".py" if parts[:first] != [""] else "", parts[first:]
    name = attributes.get("name", "")
    return "::".join(part for part in (file or name.replace(".", "/") + ".py", *classes, name if file else "") if part)
