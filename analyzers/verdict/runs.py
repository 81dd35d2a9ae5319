"""The logs of an artifact put together: one `Run` per start of the workers, with the story of each of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.parsers.job_report import ProcessExit
from analyzers.parsers.readings import LogReading, Mark, StreamReading
from analyzers.patterns import pattern
from analyzers.reading.layout import Kind, RunKey
from analyzers.records import dataclass, replace
from analyzers.rules import RuleSet
from analyzers.verdict.accusation import Blame, Exits
from analyzers.verdict.blame import NODE_LEVEL, assign_blame
from analyzers.verdict.category import Kind as FoundKind
from analyzers.verdict.category import Scene, classify
from analyzers.verdict.findings import of_trace
from analyzers.verdict.nodes import Shifts, hosts_as_nodes, shifts_of
from analyzers.verdict.starts import covers, debugged_starts, failed_to_launch, is_alone, one_start_each
from analyzers.verdict.story import RankStory, StoryTeller

_PID = pattern(r"\bpid=?'?(\d+)|Killed process (\d+)")
#: More ranks than this in one job are a number misread, not a gap to fill.
MOST_RANKS = 4096


class Outcome(StrEnum):
    """How a start of the workers ended, as far as its own logs tell."""

    FAILED = "failed"
    PASSED = "passed"
    UNCLEAR = "unclear"  # nothing failed and nothing says that it finished


@dataclass(frozen=True)
class Run:
    """One start of the workers. `clock` orders starts of one artifact; None if no line has a time.

    `green`: the tests that passed on each rank that ran them.
    """

    key: RunKey
    stories: dict[int, RankStory]
    outcome: Outcome
    blame: Blame | None
    clock: float | None
    last: tuple[str, int, str] | None = None
    green: frozenset[str] = frozenset()
    stopped: Finding | None = None  # somebody outside ended the launcher


def gather_runs(
    readings: Sequence[LogReading], rules: RuleSet, job_exits: Exits | None, newest: str | None
) -> list[Run]:
    """Build the runs, in the order they happened as far as that can be told.

    Args:
        job_exits: what the launcher said in the job's log, of the newest run.
        newest: the folder of the newest run, from the job's log.
    """
    readings = hosts_as_nodes(readings)
    starts = one_start_each(readings)
    debug = debugged_starts(starts, readings)
    moved = {one.place.run for one in readings if one.place.name in debug}
    starts = [start for start in starts if start[0] not in moved]
    keys = {key for start in starts for key in start}
    loose = [reading for reading in readings if reading.place.run not in keys]
    inside: dict[RunKey, list[int]] = {}
    for place, reading in enumerate(readings):
        inside.setdefault(reading.place.run, []).append(place)
    runs = []
    for start in starts:
        key = next((key for key in start if key.folder == newest), start[0])
        own = [readings[place] for place in sorted(place for part in start for place in inside[part])]
        own += [one for one in loose if covers(one, start) and debug.get(one.place.name, start) is start]
        named = job_exits if newest is None or key.folder in ("", newest) else None
        runs.append(_build(key, own, rules, named))
    clocks: dict[tuple[str, int, str], list[float]] = {}
    for run in runs:
        if run.clock is not None:
            clocks.setdefault((run.key.test, run.key.repeat, run.key.folder), []).append(run.clock)
    return sorted(runs, key=lambda run: _order(run, newest, clocks))


def _order(
    run: Run, newest: str | None, clocks: Mapping[tuple[str, int, str], Sequence[float]]
) -> tuple[str, int, bool, float, int]:
    """Folders go by their clocks; within one, the launcher has numbered its starts."""
    is_newest = newest is not None and run.key.folder == newest
    clock = max(clocks.get((run.key.test, run.key.repeat, run.key.folder), (0.0,)))
    return run.key.test, run.key.repeat, is_newest, clock, run.key.attempt


def _build(key: RunKey, readings: Sequence[LogReading], rules: RuleSet, job_exits: Exits | None) -> Run:
    teller = StoryTeller(rules)
    shifts = shifts_of(readings)
    streams = _by_rank(readings, shifts)
    done = any(stream.done_line for reading in readings for stream in reading.streams)
    stories = {rank: teller.tell(rank, streams.get(rank, []), run_done=done) for rank in _all_ranks(streams)}
    exits = _exits(readings, stories) or job_exits or Exits()
    blame = _at_most(shifts.confidence, assign_blame(stories, exits, list(_node_findings(readings, exits))))
    clocks = _clocks(streams)
    last = next((story.last for story in stories.values() if story.last), None)
    # The lower median: one rank's clock may be wrong. (`statistics` takes as long to load as a small log to read.)
    clock = sorted(clocks)[(len(clocks) - 1) // 2] if clocks else None
    green, stopped = _green(streams), next(_stopped(readings, rules), None)
    return Run(key, stories, _outcome(stories, blame), blame, clock, last, green, stopped)


def _at_most(confidence: Confidence, blame: Blame | None) -> Blame | None:
    """A verdict is no surer than the ranks are known."""
    order = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)
    if blame is None or order.index(blame.finding.confidence) >= order.index(confidence):
        return blame
    return replace(blame, finding=replace(blame.finding, confidence=confidence))


def _stopped(readings: Sequence[LogReading], rules: RuleSet) -> Iterator[Finding]:
    """The launcher's own traceback, in its own log: the ranks do not know why they end, or never began."""
    for reading in readings:
        for stream in reading.streams:
            for chain in stream.chains if stream.rank is None else ():
                trace = chain[-1]
                if trace.short_type == "SignalException":
                    kind = FoundKind(Category.CANCELLED)
                    yield replace(of_trace(None, stream.name, trace, kind), confidence=Confidence.LOW)
                elif failed_to_launch(trace):
                    kind = replace(classify(rules, trace.type, trace.message, Scene.SCRIPT), role=Role.CAUSE)
                    yield replace(of_trace(None, stream.name, trace, kind), confidence=Confidence.MEDIUM)


def _green(streams: Mapping[int, Sequence[StreamReading]]) -> frozenset[str]:
    passed: set[str] = set()
    others: set[str] = set()
    for own in streams.values():
        for session in (session for stream in own for session in stream.sessions):
            outcomes = session.outcomes
            passed.update(test for test, outcome in outcomes.items() if outcome.result == "PASSED")
            others.update(test for test, outcome in outcomes.items() if outcome.result != "PASSED")
    return frozenset(passed - others)


def _clocks(streams: Mapping[int, Sequence[StreamReading]]) -> list[float]:
    """Return the last time that each rank tells."""
    told = ([stream.clock for stream in own if stream.clock is not None] for own in streams.values())
    return [max(clocks) for clocks in told if clocks]


def _all_ranks(streams: dict[int, list[StreamReading]]) -> list[int]:
    """All ranks of the start: a rank with no log at all is evidence, so the gaps are filled."""
    if not streams:
        return []
    world = max((stream.world for own in streams.values() for stream in own), default=0)
    last = max(streams)
    return list(range(max(world, last + 1))) if world <= MOST_RANKS and last < MOST_RANKS else sorted(streams)


def _outcome(stories: dict[int, RankStory], blame: Blame | None) -> Outcome:
    if blame is not None:
        return Outcome.FAILED
    finished = [story for story in stories.values() if story.finished]
    return Outcome.PASSED if finished and not any(story.unfinished for story in stories.values()) else Outcome.UNCLEAR


def _by_rank(readings: Sequence[LogReading], shifts: Shifts) -> dict[int, list[StreamReading]]:
    """Sort the streams by global rank: the prefix in the lines knows it, the path only the rank on its node."""
    streams: dict[int, list[StreamReading]] = {}
    for reading in readings:
        shift = shifts.of(reading.place.run)
        local = reading.place.local_rank
        if reading.place.kind is Kind.RANK and local is not None:
            streams.setdefault(local + shift, []).extend(reading.streams)
            continue
        for stream in reading.streams:
            if stream.rank is not None:
                streams.setdefault(stream.rank, []).append(stream)
            elif is_alone(reading) or reading.place.kind is Kind.RESULTS:
                streams.setdefault(0, []).append(stream)
    return streams


def _exits(readings: Iterable[LogReading], stories: Mapping[int, RankStory]) -> Exits | None:
    """What the launcher says of this start. It says nothing of one that went well after it had begun anew."""
    green = bool(stories) and all(story.finished and story.first is None for story in stories.values())
    for reading in readings:
        report = reading.launcher
        if report.failures and not (report.restarted and green):
            exits = tuple(_by_signal(e) for e in report.failures)
            return Exits(reading.place.name, exits, report.rank_of_pid, len(report.ended_pids))
    return None


def _node_findings(readings: Iterable[LogReading], exits: Exits) -> Iterable[tuple[int | None, Finding]]:
    pids = exits.rank_of_pid or {}
    for reading in readings:
        for stream in reading.streams:
            if stream.rank is not None:
                continue
            for mark in stream.marks:
                rule = mark.match.rule
                told = rule.category in NODE_LEVEL or rule.id == "xid-program"
                if told and rule.blames is Role.CAUSE:
                    found = _PID.search(mark.text)
                    pid = int(found[1] or found[2]) if found else None
                    yield (pids.get(pid) if pid is not None else None), _finding(stream, mark)


def _finding(stream: StreamReading, mark: Mark) -> Finding:
    rule, match = mark.match.rule, mark.match
    return Finding(
        rule.category,
        rule.blames,
        Error(match.type, match.message),
        Evidence(stream.name, mark.line, (mark.text,)),
        offset=mark.offset,
        retryable=rule.retryable,
        rule=rule.id,
    )


def exits_of(file: str, exits: Sequence[ProcessExit]) -> Exits | None:
    """Wrap the exits that another log tells."""
    return Exits(file, tuple(_by_signal(e) for e in exits)) if exits else None


def _by_signal(told: ProcessExit) -> ProcessExit:
    """A shell between launcher and process reports a signal as 128 and its number."""
    return replace(told, exit_code=128 - told.exit_code) if 128 < told.exit_code < 160 else told
