"""pytest's output on one rank: which tests ran, how each ended, and the reports of those that failed."""

from __future__ import annotations

from analyzers.parsers.pytest_ids import (
    read_bare_result,
    read_progress,
    read_results,
    section_name,
    split_id,
    whole_test,
)
from analyzers.parsers.pytest_sections import Report, SectionReader
from analyzers.patterns import pattern
from analyzers.reading.scan import Line, Stretch
from analyzers.records import dataclass, field, replace

_RULED = pattern(r"^=+ (?P<title>\S.*?) =+$")
_COUNTS = pattern(r"(?<!\d)(?P<n>\d+) (?P<what>passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")
#: pytest ends early. "Interrupted: 1 error during collection" only sums up what the reports told.
_BANGED = pattern(r"^!{3,} (?P<what>\S.*?) !{3,}$")
_CLOSING = pattern(
    r"(?>.*?\b(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|no tests ran)\b).* in [\d.]+ ?s"
)
_TITLES = pattern(
    r"test session starts|FAILURES|ERRORS|PASSES|XPASSES|XFAILURES|warnings summary|short test summary|slowest |"
    r"rerun test summary|tests coverage|coverage: "
)
_ROOT = pattern(r"^rootdir: (?P<root>/[^,]*)")
_CONFTEST = pattern(r"^ImportError while loading conftest '(?P<path>[^']+)'")
#: A report that a conftest hook prints at once, before the rank goes on (and hangs).
_AT_ONCE = pattern(
    r"^(?:\[rank ?\d+\]:? )?(?P<result>FAILED|ERROR) (?P<id>\S+\.py::.+?)(?: \((?P<when>call|setup|teardown)\))$"
)
#: After the error lines of a report that stands alone only these still belong to it.
_GOES_ON = pattern(r"^(?:E(?: |$)|\s*$|[^\s:]+:\d+: )")
_BAD = ("FAILED", "ERROR")
#: What a line begins with that means something between two tests, but for one that holds ".py::".
_PROGRESS_STARTS = "rI"
#: A line that holds none of these, and begins with none of `RULES`, says nothing between two tests.
WORDS, RULES = ("rootdir", "ImportError while", ".py::"), ("=", "!")
#: The last header while tests run.
_IN_PROGRESS = ("", "test session starts")
#: A subtest that failed: the test that it is a part of failed, though its own line says PASSED.
#: `[message] (parameters)` stand in between, either may be missing. Parameters begin behind the first "] (" or nowhere.
_SUBTEST = pattern(
    r"^SUBFAIL(?:ED)?(?:\[(?:(?:(?!\] ?\().)*?(?!\] ?\()\]|(?>.*?\] ?\().*?\)|.*?\])| ?\(.*?\))? (?=\S+\.py::)"
)


class Outcome:
    """One test's result. `line` and `offset` are those of the result word; `result` is None while the test runs.

    `summary` is the line in the short summary, with its number: all there is of a failure under `--tb=no`.
    """

    __slots__ = ("line", "node_id", "offset", "result", "summary")  # no dataclass: there are tens of thousands

    def __init__(self, node_id: str, line: int, offset: int, result: str | None = None) -> None:
        """Note a result, or with None that a test began."""
        self.node_id = node_id
        self.line = line
        self.offset = offset
        self.result = result
        self.summary: tuple[int, str] | None = None


@dataclass
class Session:
    """One run of pytest. `counts` is None until its closing line; `root` is its rootdir."""

    line: int
    root: str | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    counts: dict[str, int] | None = None
    stopped: tuple[int, str] | None = None  # line and words: pytest was told to stop, or interrupted
    reporting: bool = False  # a section or the closing line was seen: all tests have ended

    @property
    def finished(self) -> bool:
        """Whether the closing line was printed."""
        return self.counts is not None

    @property
    def passed(self) -> bool:
        """Whether it finished and nothing failed."""
        counts = self.counts
        return (
            counts is not None
            and self.stopped is None
            and not counts.get("failed")
            and not counts.get("error")
            and not self.bad
        )

    @property
    def bad(self) -> list[Outcome]:
        """The tests that failed or had an error, in the order they ended."""
        return [outcome for outcome in self.outcomes.values() if outcome.result in _BAD]

    @property
    def running(self) -> Outcome | None:
        """The test that began and never ended; None once the report began, unless pytest was stopped in the test."""
        last = next(reversed(self.outcomes.values()), None)
        over = self.reporting and self.stopped is None
        return last if last and last.result is None and not over else None


@dataclass(frozen=True)
class _Outer:
    """A run as it stood when a test of it, still going, printed what looks like a report: perhaps of its own run."""

    place: int
    session: Session
    current: Outcome


class PytestReader:
    """Feed it the lines of one rank's stream in order."""

    def __init__(self) -> None:
        """Begin before the first session."""
        self.sessions: list[Session] = []
        self._section: SectionReader | None = None
        self._early = False  # the section stands alone: nothing but its own lines tells where it ends
        self._title = ""
        self._current: Outcome | None = None
        self._outer: _Outer | None = None

    @property
    def is_idle(self) -> bool:
        """Whether only a line with one of `WORDS` or `RULES` means something."""
        return self._section is None and self._title in _IN_PROGRESS and not (self._current or self._outer)

    @property
    def current_id(self) -> str | None:
        """The test at hand, None between tests and in the report."""
        running = self.sessions[-1].running if self.sessions else None
        return running.node_id if running else None

    def feed(self, line: Line) -> bool:
        """Take one line; say whether it is pytest's own."""
        text = line.text
        if text[:1] == "=" and (ruled := _RULED.match(text)) is not None:
            return self._ruled(line, ruled["title"])
        if text[:1] == "!" and (banged := _BANGED.match(text)) is not None:
            if not banged["what"].startswith(("Interrupted: ", "stopping after ", "xdist.dsession.Interrupted")):
                self._session(line.number).stopped = (line.number, banged["what"].removeprefix("_pytest.outcomes."))
            self._leave_section(line.number)
            return True
        if self._section is not None and self._early and self._section.ended and not _GOES_ON.match(text):
            self._leave_section(line.number)
        if self._section is not None:
            self._section.feed(line)
            return True
        if self._title.startswith("short test summary"):
            return self._summary(line, text)
        if self._title in _IN_PROGRESS:
            return self._progress(line, text)
        return bool(self._title)

    def feed_results(self, stretch: Stretch) -> bool:
        """Take a stretch of `PLAIN_RESULTS`, unless it must be read line by line; say whether it was taken."""
        if self._section is not None or self._title not in _IN_PROGRESS:
            return False
        outcomes = self._session(stretch.number).outcomes
        for node_id, result, number, offset in read_results(stretch):
            known = outcomes.get(node_id)
            if known is None or known.result is None:
                outcomes[node_id] = Outcome(node_id, number, offset, result)
        self._current = None
        return True

    def end(self) -> None:
        """The log ends: settle what is open."""
        if self._section is not None:
            self._leave_section(0)
        for session in self.sessions:
            _give_ids(session)

    def _leave_section(self, number: int) -> None:
        if self._section is not None:
            self._section.end()
            self._session(number).reports.extend(self._section.reports)
        self._section, self._early = None, False

    def _session(self, line: int) -> Session:
        if not self.sessions:
            self.sessions.append(Session(line))
        return self.sessions[-1]

    def _ruled(self, line: Line, title: str) -> bool:
        """A line between rules: one of pytest's own headers begins something, any other is somebody's decoration."""
        closing = _CLOSING.match(title) is not None
        if not closing and not _TITLES.match(title):
            return self._section is not None
        self._hold()
        if title == "test session starts":
            self.end()
            self.sessions.append(Session(line.number))
        elif self._section is not None:
            self._leave_section(line.number)
        session = self._session(line.number)
        if title in ("FAILURES", "ERRORS"):
            self._section, self._early = SectionReader(), False
        if closing:
            session.counts = {found["what"].removesuffix("s"): int(found["n"]) for found in _COUNTS.finditer(title)}
            title = ""
        session.reporting = session.reporting or title != "test session starts"
        self._title, self._current = title, None
        return True

    def _progress(self, line: Line, text: str) -> bool:
        if not (self._current or self._outer or ".py::" in text or text[:1] in _PROGRESS_STARTS):
            return False  # as nearly every line between two tests
        if text.startswith("rootdir") and (root := _ROOT.match(text)) is not None:
            self._session(line.number).root = root["root"].strip()
            return True
        if (found := read_progress(text)) is not None:
            return self._note(line, *found)
        if (self._current or self._outer) and (result := read_bare_result(text)) is not None:
            self._resume()
            if self._current is None:
                return False
            self._current.result, self._current.line, self._current.offset = result, line.number, line.offset
            self._current = None
            return True
        return self._early_report(line, text)

    def _hold(self) -> None:
        """A report begins while a test is going: keep what is known, should the test turn out to go on."""
        if self._current is not None and self.sessions:
            last = self.sessions[-1]
            kept = replace(last, outcomes=dict(last.outcomes), reports=list(last.reports))
            self._outer = _Outer(len(self.sessions) - 1, kept, self._current)

    def _resume(self) -> None:
        """A test ends that was held: it had run pytest itself, and what that said is no part of this run."""
        outer = self._outer
        if self._current is None and outer is not None and not self._title:
            self.sessions[outer.place :] = [outer.session]
            self._current, self._outer = outer.current, None

    def _note(self, line: Line, node_id: str, result: str | None) -> bool:
        outcomes = self._session(line.number).outcomes
        known = outcomes.get(node_id)
        worse = known is not None and result in _BAD and known.result not in _BAD
        if known is None or worse or (known.result is None and result is not None):
            outcomes[node_id] = Outcome(node_id, line.number, line.offset, result)
        self._current = outcomes[node_id] if result is None else None
        return True

    def _early_report(self, line: Line, text: str) -> bool:
        """A report outside of the sections: of a conftest that cannot be loaded, or of a hook that tells at once."""
        if text.startswith("ImportError while") and (conftest := _CONFTEST.match(text)) is not None:
            self._section, self._early = SectionReader(), True
            self._section.open(conftest["path"], line, when="conftest")
            return True
        if ".py::" in text and (told := _AT_ONCE.match(text)) is not None:
            self._note(line, told["id"], told["result"])
            self._section, self._early = SectionReader(), True
            self._section.open(section_name(told["id"]), line, when=told["when"], node_id=told["id"])
            return True
        return False

    def _summary(self, line: Line, text: str) -> bool:
        if _COUNTS.match(text) and _CLOSING.match(text):  # `-q` prints no rules around it
            return self._ruled(line, text)
        word, _, rest = _SUBTEST.sub("FAILED ", text).partition(" ")
        if word not in _BAD or (parts := split_id(rest)) is None:
            return False
        known = self._session(line.number).outcomes.setdefault(parts[0], Outcome(parts[0], 0, 0))
        known.result = known.result if known.result in _BAD else word
        known.summary = (line.number, parts[1].removeprefix(" - "))
        return True


def _give_ids(session: Session) -> None:
    """Find the node id of each report: by its title among the tests that failed, then among all."""
    if all(report.node_id is not None for report in session.reports):
        return
    by_title: dict[str, list[Outcome]] = {}
    taken: set[str] = set()
    for outcome in session.outcomes.values():
        by_title.setdefault(section_name(outcome.node_id), []).append(outcome)
    by_title[""] = list(session.outcomes.values())  # what `--tb=line` prints is in the order of the failures
    for report in session.reports:
        if report.node_id is None:
            matches = by_title.get(report.title) or by_title.get(whole_test(report.title), [])
            bad = [outcome for outcome in matches if outcome.result in _BAD]
            fresh = [outcome for outcome in bad if outcome.node_id not in taken]
            chosen = (fresh or bad or matches)[:1]
            report.node_id = chosen[0].node_id if chosen else None
            taken.update(outcome.node_id for outcome in chosen)
