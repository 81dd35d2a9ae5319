"""The checks that a functional test runs on its own results: pytest, started by the test's script, not by a rank.

Its output stands in the job's log only. Most often a metric differs from its golden values.
"""

from __future__ import annotations

import re

from analyzers.comparison import GoldenComparison
from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.parsers.frames import innermost
from analyzers.parsers.golden_lines import ComparisonReader
from analyzers.parsers.job_lines import JobLine
from analyzers.parsers.pytest_report import PytestReader, Session
from analyzers.parsers.pytest_sections import Report
from analyzers.parsers.runner import JOB_LOG
from analyzers.parsers.tracebacks import Trace, TracebackReader
from analyzers.patterns import pattern
from analyzers.records import replace
from analyzers.rules import RuleSet, Where

#: An exception that ended a script is followed by its shell's trace and the launcher's good-bye, not by more work.
_LAST_LINES = 80
#: The checks that hold a run's results against golden values, whatever they say of a difference.
_COMPARES = pattern(r"^tests/functional_tests/python_test_utils/test_(?:pretraining|inference|grpo)_\w+\.py::")
_UNITTEST = pattern(r"^(?P<how>FAIL|ERROR): \w+ \([\w.]+\)$")


class ScriptReader:
    """Feed it what a script prints between the ranks' lines; a new launch begins anew."""

    def __init__(self, rules: RuleSet) -> None:
        """Begin before any output."""
        self._rules = rules
        self._pytest = PytestReader()
        self._traces = TracebackReader()
        self._last = 0
        self._numbers = ComparisonReader()
        self._unittest: re.Match[str] | None = None  # the last report of Python's own unittest

    def feed(self, line: JobLine) -> None:
        """Take one line that belongs to no rank."""
        plain = line.plain()
        self._last = line.number
        if "test session starts" in line.text and self.comparison() is None:
            self._numbers = ComparisonReader()  # a script may check twice; the first check that fails is told
        self._numbers.feed(line.text)
        self._unittest = _UNITTEST.match(line.text) or self._unittest
        if line.mark:
            self._traces.end_message()  # by the runner's own word, which is none of the script's
        if not self._pytest.feed(plain) and not line.mark:
            self._traces.feed(plain)

    def finding(self) -> Finding | None:
        """Return what made the script fail: its first failed check, else its last exception; None if there is none."""
        self._pytest.end()
        for session in self._pytest.sessions:
            if session.bad and (finding := self._of_session(session)) is not None:
                return finding
        return None

    def comparison(self) -> GoldenComparison | None:
        """Return what the check against the golden values found different, if it said so."""
        return self._numbers.comparison()

    def exception(self) -> Finding | None:
        """Return the last exception that a script printed outside of pytest, unless it is the launcher's own."""
        trace = self._traces.chains[-1][-1] if self._traces.chains else None
        if trace is None or not trace.type or "torch.distributed.elastic" in trace.type:
            return None
        if self._last - trace.end > _LAST_LINES:
            return None
        finding = replace(self._to_finding(trace, root=None, tests=()), confidence=Confidence.MEDIUM)
        if self._unittest is None:
            return finding
        failed = self._unittest["how"] == "FAIL"
        return replace(finding, category=Category.TEST_ASSERTION if failed else Category.TEST_ERROR)

    def _of_session(self, session: Session) -> Finding | None:
        ids = tuple(outcome.node_id for outcome in session.bad)
        for report in session.reports:
            trace = report.primary(session.root)
            if trace is not None and _is_bad(report, ids):
                return self._to_finding(trace, root=session.root, tests=ids)
        first = session.bad[0]
        return Finding(
            Category.TEST_ERROR,
            Role.CAUSE,
            Error(None, f"{first.result} {first.node_id}"),
            Evidence(JOB_LOG, first.line),
            offset=first.offset,
            tests=ids,
        )

    def _to_finding(self, trace: Trace, *, root: str | None, tests: tuple[str, ...]) -> Finding:
        match = self._rules.match(trace.text.partition("\n")[0], where=Where.RANK)
        known = match is not None and match.rule.blames is not Role.NOISE
        frame = innermost(trace.frames, root)
        lines = [text for text in trace.message.splitlines() if text.strip() != "assert False"]
        excerpt = tuple(trace.text.splitlines()[:2])
        if match and match.rule.category is Category.GOLDEN_MISMATCH:
            excerpt += tuple(dict.fromkeys(self._numbers.verdicts))
        return Finding(
            match.rule.category if match and known else _category(trace, tests),
            match.rule.blames if match and known else Role.CAUSE,
            Error(trace.type or None, "\n".join(lines)),
            Evidence(JOB_LOG, trace.at_line, excerpt),
            offset=trace.offset,
            location=f"{frame.path}:{frame.line}" if frame else None,
            tests=tests,
            retryable=match.rule.retryable if match else None,
            rule=match.rule.id if match else None,
        )


def _is_bad(report: Report, ids: tuple[str, ...]) -> bool:
    return report.node_id is None or report.node_id in ids


def _category(trace: Trace, tests: tuple[str, ...]) -> Category:
    if not tests:
        return Category.CRASH_PYTHON
    if trace.short_type == "AssertionError" and all(_COMPARES.match(test) for test in tests):
        return Category.GOLDEN_MISMATCH
    return Category.TEST_ASSERTION if trace.short_type == "AssertionError" else Category.TEST_ERROR
