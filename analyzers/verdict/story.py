"""What happened on one rank: the first thing that went wrong there, before ranks are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzers.model import Category, Confidence, Finding, Role
from analyzers.parsers.chains import primary
from analyzers.parsers.collectives import CollectiveEvent, read_mismatch, read_missing
from analyzers.parsers.collectives import Kind as CollectiveKind
from analyzers.parsers.native import STUCK
from analyzers.parsers.pytest_report import Session
from analyzers.parsers.pytest_sections import Report
from analyzers.parsers.rank_log import DOCUMENTS
from analyzers.parsers.readings import Mark, StreamReading
from analyzers.parsers.tracebacks import Trace
from analyzers.patterns import pattern
from analyzers.reading.layout import Kind as LogKind
from analyzers.records import dataclass, field, replace
from analyzers.rules import RuleSet
from analyzers.verdict.category import Kind, Scene, classify
from analyzers.verdict.crashes import crashed, is_childs, kind_of_crash
from analyzers.verdict.fatal import fatal_cluster, is_logged, uncaught_line, was_survived
from analyzers.verdict.findings import (
    of_mark,
    of_outcome,
    of_stop,
    of_summary,
    of_timeout,
    of_trace,
    of_usage,
)
from analyzers.verdict.kernel_assertion import with_assertion
from analyzers.verdict.stuck import find_stuck, kind_of_time_limit

#: torch.distributed.checkpoint gathers the failures of all ranks and raises them everywhere.
_CHECKPOINT = pattern(r"CheckpointException ranks:\s*dict_keys\(\[(?P<ranks>[\d, ]*)\]\)")

#: With these words torch's own monitor ends a process that hangs; the others stand in healthy logs as well, at the end.
ENDED_BY_MONITOR = frozenset({"nccl-heartbeat", "nccl-heartbeat-end", "nccl-process-down"})

#: Of each kind in one stream; what was survived long before the end is no candidate for the cause.
_DOUBTED = 8


@dataclass
class RankStory:
    """One rank's part. `first` is what went wrong first; `role` in it says whether the rank may be to blame.

    `named` are ranks that its error accuses; `signature` is its own operation where collectives did not match;
    `at_exit`: the first thing went wrong after everything was done. `when` compares within one kind of clock only.
    """

    rank: int
    first: Finding | None = None
    finished: bool = False
    at_exit: bool = False
    in_child: bool = False  # what crashed was a process that a test had started, and no test failed of it
    unfinished: bool = False  # pytest began and printed no closing line
    in_tests: bool = False  # pytest ran tests: it catches what they raise, so an exception on stderr was only logged
    running: str | None = None
    position: int = 0  # of the first test that failed, or never ended, in the order of the run
    failed: tuple[str, ...] = ()
    named: tuple[int, ...] = ()
    signature: str | None = None
    doubted: tuple[
        Finding, ...
    ] = ()  # seen and not believed: exceptions and rules' causes that it seems to have survived
    aside: Finding | None = None  # the watchdog's word that something hung, where no line says in which operation
    timeouts: list[CollectiveEvent] = field(default_factory=list)
    states: list[CollectiveEvent] = field(default_factory=list)
    file: str = ""
    when: float | None = None
    last: tuple[str, int, str] | None = None  # file, line, text

    @property
    def is_ended_by_monitor(self) -> bool:
        """Whether the last that is known of the rank is that torch found it to hang."""
        return self.aside is not None and self.aside.rule in ENDED_BY_MONITOR and not self.finished


class StoryTeller:
    """Tells the story of each rank with one set of rules."""

    def __init__(self, rules: RuleSet) -> None:
        """Keep the rules."""
        self._rules = rules

    def tell(self, rank: int, streams: Sequence[StreamReading], *, run_done: bool = False) -> RankStory:
        """Tell what went wrong first on a rank, given all streams that speak of it, in any order.

        Args:
            run_done: some rank of this start came to its regular end, so what was only logged was survived.
        """
        ordered = sorted(
            streams,
            key=lambda stream: (
                stream.kind in (LogKind.NCCL, LogKind.LAUNCHER) or stream.stream in DOCUMENTS,
                stream.stream != "stderr",
                stream.name,
            ),
        )
        story = RankStory(rank)
        sessions = [
            (stream, session)
            for stream in ordered
            for session in stream.sessions
            if session.outcomes or session.line or session.reports
        ]
        self._note_progress(story, ordered, [session for _, session in sessions])
        passed = _passed_tests(session for _, session in sessions)
        candidates = [
            self._from_usage(rank, ordered),
            self._from_reports(story, sessions),
            self._from_crashes(story, ordered, passed),
            self._from_chains(story, ordered, passed, run_done=run_done),
            None if run_done or story.finished else self._from_marks(story, ordered, passed),
            self._from_bare_results(rank, sessions),
            self._from_stops(rank, sessions),
            self._from_timeouts(story),
        ]
        story.first = with_assertion(_choose([found for found in candidates if found is not None]), ordered, passed)
        if story.first is None and not story.finished:
            story.first = find_stuck(rank, ordered, story.running, in_tests=story.in_tests)
        story.doubted = tuple(self._doubted(rank, ordered, passed))
        asides = [of_mark(rank, stream.name, mark) for stream in ordered for mark in stream.marks if _is_hang(mark)]
        ends = (aside for aside in asides if aside.rule in ENDED_BY_MONITOR)
        story.aside = next(ends, asides[0] if asides else None)
        return story

    def _note_progress(self, story: RankStory, streams: Sequence[StreamReading], sessions: list[Session]) -> None:
        last = sessions[-1] if sessions else None
        done = any(stream.done_line for stream in streams)
        story.finished = last.passed if last is not None and last.outcomes else done or bool(last and last.passed)
        story.unfinished = last is not None and not last.finished
        story.in_tests = any(session.outcomes for session in sessions)
        running = next((session.running for session in reversed(sessions) if session.running), None)
        stopped = last is not None and last.stopped is not None
        story.running = running.node_id if running and (story.unfinished or stopped) else None
        bad = [outcome.node_id for session in sessions for outcome in session.bad]
        story.failed = tuple(dict.fromkeys(bad))
        ran = [outcome for session in sessions for outcome in session.outcomes.values()]
        open_ended = (place for place, outcome in enumerate(ran) if outcome.result in (None, "FAILED", "ERROR"))
        story.position = next(open_ended, 0)
        for stream in streams:
            for event in stream.collectives:
                (story.timeouts if event.kind is CollectiveKind.TIMEOUT else story.states).append(event)
                story.file = stream.name
            if stream.tail and (story.last is None or stream.stream == "stderr"):
                story.last = (stream.name, *stream.tail[-1])

    def _from_usage(self, rank: int, streams: Sequence[StreamReading]) -> Finding | None:
        for stream in streams:
            if stream.usage is not None:
                return of_usage(rank, stream.name, stream.usage)
        return None

    def _from_reports(self, story: RankStory, sessions: Sequence[tuple[StreamReading, Session]]) -> Finding | None:
        """The first test in the order of the run whose report says why it failed; teardowns are printed first."""
        found: list[tuple[int, bool, Finding]] = []
        for number, (stream, session) in enumerate(sessions):
            order = {outcome.node_id: place for place, outcome in enumerate(session.outcomes.values())}
            for report in session.reports:
                trace = report.primary(session.root)
                if trace is not None:
                    place = order.get(report.node_id or "", -1 if report.when in ("collecting", "conftest") else 10**6)
                    finding = self._of_report(story.rank, stream, session, report, trace)
                    found.append((number * 10**7 + place, report.when == "teardown", finding))
        if not found:
            return None
        finding = min(found, key=lambda item: (*item[:2], item[2].evidence.line))[2]
        self._note_accusation(story, finding.error.message, [])
        return finding

    def _of_report(self, rank: int, stream: StreamReading, session: Session, report: Report, trace: Trace) -> Finding:
        scenes = {"call": Scene.TEST, "collecting": Scene.COLLECTION, "conftest": Scene.COLLECTION}
        kind = classify(self._rules, trace.type, trace.message, scenes.get(report.when, Scene.FIXTURE))
        if trace.type == "Failed" and trace.message.startswith("Timeout"):
            kind = kind_of_time_limit(trace.frames)
        return of_trace(rank, stream.name, trace, kind, session.root)

    def _from_crashes(self, story: RankStory, streams: Sequence[StreamReading], passed: set[str]) -> Finding | None:
        for stream in streams:
            raised = uncaught_line(stream, passed, finished=story.finished)
            for crash in (crash for crash in stream.crashes if crash.signal != STUCK):
                kind = kind_of_crash(
                    self._rules,
                    crash,
                    has_timeouts=any(event.kind is CollectiveKind.TIMEOUT for event in stream.collectives),
                )
                if kind is None or (raised and crash.line > raised and kind.category is Category.CRASH_NATIVE):
                    continue
                story.at_exit = story.finished
                story.in_child = story.finished and not story.failed and is_childs(crash.frames)
                return crashed(story.rank, stream.name, crash, kind)
        return None

    def _from_chains(
        self, story: RankStory, streams: Sequence[StreamReading], passed: set[str], *, run_done: bool
    ) -> Finding | None:
        for stream in streams:
            cluster = fatal_cluster(stream, passed, finished=story.finished)
            logged = is_logged(stream, cluster, in_tests=story.in_tests, run_done=run_done)
            if not cluster or (logged and run_done):
                continue
            chain = cluster[0]
            trace = primary(chain)
            scene = Scene.TEST if story.in_tests and story.failed else Scene.SCRIPT
            kind = classify(self._rules, trace.type, trace.message, scene)
            logged = logged or was_survived(cluster, self._rules)
            self._note_accusation(story, trace.message, chain)
            if story.named and story.rank not in story.named and kind.category is not Category.COLLECTIVE_TIMEOUT:
                kind = Kind(kind.category, Role.CONSEQUENCE, kind.rule)
            finding = of_trace(story.rank, stream.name, trace, kind)
            return replace(finding, confidence=Confidence.LOW) if logged else finding
        return None

    def _doubted(self, rank: int, streams: Sequence[StreamReading], passed: set[str]) -> Iterable[Finding]:
        for stream in streams:
            last = list(zip(stream.chains, stream.during, strict=True))[-_DOUBTED:]
            for chain, test in last:
                if test not in passed and not chain[0].harmless and any(trace.type for trace in chain):
                    trace = primary(chain)
                    kind = classify(self._rules, trace.type, trace.message, Scene.SCRIPT)
                    yield replace(of_trace(rank, stream.name, trace, kind), confidence=Confidence.LOW)
            for mark in stream.marks[-_DOUBTED:]:
                if mark.match.rule.blames is Role.CAUSE and mark.during not in passed:
                    yield replace(of_mark(rank, stream.name, mark), confidence=Confidence.LOW)

    def _note_accusation(self, story: RankStory, message: str, chain: Sequence[Trace]) -> None:
        story.signature = read_mismatch(message, story.rank) if "mismatch between collectives" in message else None
        story.named = read_missing(message)
        for trace in chain:
            if told := _CHECKPOINT.search(trace.text):
                story.named = tuple(int(rank) for rank in re.findall(r"\d+", told["ranks"]))

    def _from_marks(self, story: RankStory, streams: Sequence[StreamReading], passed: set[str]) -> Finding | None:
        for stream in streams:
            for mark in stream.marks:
                rule = mark.match.rule
                if rule.blames is Role.CAUSE and mark.during not in passed and mark.line >= stream.progress_line:
                    return of_mark(story.rank, stream.name, mark)
        return None

    def _from_bare_results(self, rank: int, sessions: Sequence[tuple[StreamReading, Session]]) -> Finding | None:
        """A test that is FAILED, and no report of it: the rank never came to print one, or was told not to."""
        for stream, session in sessions:
            told = {report.node_id for report in session.reports if report.chain}
            for outcome in session.bad:
                if outcome.node_id in told:
                    continue
                if outcome.summary is not None:
                    return of_summary(rank, stream.name, outcome.summary, self._rules)
                if outcome.line and not (session.reporting and session.reports):
                    return of_outcome(rank, stream.name, outcome)
        return None

    def _from_stops(self, rank: int, sessions: Sequence[tuple[StreamReading, Session]]) -> Finding | None:
        for stream, session in sessions:
            if session.stopped is not None:
                return of_stop(rank, stream, *session.stopped)
        return None

    def _from_timeouts(self, story: RankStory) -> Finding | None:
        if not story.timeouts:
            return None
        event = min(story.timeouts, key=lambda event: (event.when is None, event.when or 0.0, event.line))
        story.when = event.when
        return of_timeout(story.rank, story.file, event)


def _choose(findings: list[Finding]) -> Finding | None:
    """Choose among what the parsers found, in their order: a report or a traceback says more than a single line."""
    return next((finding for finding in findings if finding.role is Role.CAUSE), findings[0] if findings else None)


def _is_hang(mark: Mark) -> bool:
    return mark.match.rule.category is Category.COLLECTIVE_TIMEOUT and mark.match.rule.blames is Role.CONSEQUENCE


def _passed_tests(sessions: Iterable[Session]) -> set[str]:
    return {
        outcome.node_id
        for session in sessions
        for outcome in session.outcomes.values()
        if outcome.result in ("PASSED", "SKIPPED", "XFAIL", "XPASS")
    }
