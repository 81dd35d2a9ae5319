"""What a parser found, as a `Finding`: the same fields whatever it was."""

from __future__ import annotations

from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.parsers.collectives import CollectiveEvent
from analyzers.parsers.frames import Frame, innermost
from analyzers.parsers.native import Crash
from analyzers.parsers.pytest_report import Outcome
from analyzers.parsers.readings import Mark, StreamReading
from analyzers.parsers.tracebacks import Trace
from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import replace
from analyzers.rules import RuleSet
from analyzers.verdict.category import Kind, Scene, classify
from analyzers.verdict.reason import reason_line

_EXCERPT_LINES = 5
_EXCERPT_CHARS = 400
#: PyTorch ends every CUDA error with these, whatever it was: how to look for it, nothing of what happened.
#: Source: torch 2.13, c10/cuda/CUDAMiscFunctions.cpp and CUDAException.cpp.
_ADVICE = (
    "Search for `cudaError",
    "CUDA kernel errors might be asynchronously reported",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING",
    "Compile with `TORCH_USE_CUDA_DSA`",
)
_SUMMARY = pattern(r"(?P<type>[A-Za-z_][\w.]*): (?P<message>.*)")


def of_trace(rank: int | None, file: str, trace: Trace, kind: Kind, root: str | None = None) -> Finding:
    """A Python exception."""
    return Finding(
        kind.category,
        kind.role,
        Error(trace.type or None, _without_advice(trace.message)),
        Evidence(file, trace.at_line or trace.end, excerpt(_without_advice(trace.text))),
        offset=trace.offset,
        rank=rank,
        location=_place(trace.frames, root),
        retryable=kind.retryable,
        rule=kind.rule,
    )


def _without_advice(message: str) -> str:
    first, *rest = message.split("\n")
    return "\n".join([first, *(line for line in rest if not line.startswith(_ADVICE))])


def of_crash(rank: int | None, file: str, crash: Crash, kind: Kind) -> Finding:
    """A crash below Python; an abort that another rank's death led to has no signal of its own."""
    named = crash.exception if kind.role is Role.CONSEQUENCE else crash.signal
    return Finding(
        kind.category,
        kind.role,
        Error(named, crash.message),
        Evidence(file, crash.line, excerpt(crash.message)),
        offset=crash.offset,
        rank=rank,
        location=_place(crash.frames, None),
        retryable=kind.retryable,
        rule=kind.rule,
    )


def of_mark(rank: int | None, file: str, mark: Mark) -> Finding:
    """A line that a rule knows."""
    rule, match = mark.match.rule, mark.match
    return Finding(
        rule.category,
        rule.blames,
        Error(match.type, match.message),
        Evidence(file, mark.line, excerpt(mark.text)),
        offset=mark.offset,
        rank=rank,
        retryable=rule.retryable,
        rule=rule.id,
    )


def of_usage(rank: int | None, file: str, line: Line) -> Finding:
    """pytest, or a script's own argparse, did not understand what it was told to do."""
    evidence = Evidence(file, line.number, excerpt(line.text))
    of_pytest = line.text.startswith(("__main__.py", "ERROR: ")) or "pytest" in line.text.partition(": error: ")[0]
    category = Category.COLLECTION if of_pytest else Category.CRASH_PYTHON
    return Finding(category, Role.CAUSE, Error(None, line.text), evidence, offset=line.offset, rank=rank)


def of_outcome(rank: int | None, file: str, outcome: Outcome) -> Finding:
    """A test that failed, and no word why."""
    text = f"{outcome.node_id} {outcome.result}"
    return Finding(
        Category.TEST_ERROR,
        Role.CAUSE,
        Error(None, text),
        Evidence(file, outcome.line, (text,)),
        offset=outcome.offset,
        rank=rank,
        confidence=Confidence.MEDIUM,
    )


def of_summary(rank: int | None, file: str, summary: tuple[int, str], rules: RuleSet) -> Finding:
    """A test of which only the line in the short summary tells, its message cut off."""
    number, text = summary
    named = _SUMMARY.match(text)
    asserted = "AssertionError" if text.startswith("assert ") else ""
    trace = Trace(number, type=named["type"] if named else asserted, at_line=number)
    trace.message = named["message"] if named else text
    kind = classify(rules, trace.type, trace.message, Scene.TEST)
    return replace(of_trace(rank, file, trace, kind), confidence=Confidence.MEDIUM)


def of_timeout(rank: int | None, file: str, event: CollectiveEvent) -> Finding:
    """The watchdog's own line."""
    return Finding(
        Category.COLLECTIVE_TIMEOUT,
        Role.CONSEQUENCE,
        Error(None, event.text[event.text.find("Watchdog caught") :]),
        Evidence(file, event.line, excerpt(event.text)),
        offset=event.offset,
        rank=rank,
    )


def of_stop(rank: int | None, stream: StreamReading, line: int, what: str) -> Finding:
    """pytest was stopped from within (`pytest.exit`) or by a signal (KeyboardInterrupt)."""
    interrupted = what.startswith("KeyboardInterrupt")
    return Finding(
        Category.CANCELLED if interrupted else Category.TEST_ERROR,
        Role.CONSEQUENCE if interrupted else Role.CAUSE,
        Error("KeyboardInterrupt" if interrupted else "Exit", what),
        Evidence(stream.name, line, (what,)),
        rank=rank,
        confidence=Confidence.MEDIUM,
    )


def excerpt(text: str) -> tuple[str, ...]:
    """Return the first lines of a text and the one that says why, each cut to a length that a comment can show."""
    lines = text.split("\n")
    reason = reason_line(lines)
    shown = lines[:_EXCERPT_LINES] if reason < _EXCERPT_LINES else [*lines[: _EXCERPT_LINES - 1], lines[reason]]
    return tuple(line[:_EXCERPT_CHARS] for line in shown)


def _place(frames: list[Frame], root: str | None) -> str | None:
    frame = innermost(frames, root)
    return f"{frame.path}:{frame.line}" if frame else None
