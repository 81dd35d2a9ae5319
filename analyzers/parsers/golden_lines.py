"""What the golden-value check prints: the values that it compared, and what it thinks of each metric.

A check that fails prints "Actual values: ..." and "Golden values: ..." (no step numbers), then its verdict; one that
passes prints its verdict alone. pytest prints all of it twice: live, and again under "Captured log call".
Source: Megatron-LM, tests/functional_tests/python_test_utils/common.py, pipeline.
"""

from __future__ import annotations

import re

from analyzers.comparison import GoldenComparison, MetricDifference
from analyzers.parsers.golden_series import MISSING, Series, compare, judge, with_told
from analyzers.patterns import pattern
from analyzers.records import dataclass, field

_VALUES = pattern(r"\b(?P<side>Actual|Golden) values: (?P<values>[-+0-9.einfa, ]+)$")
_VERDICT = pattern(
    r"(?:\b(?P<kind>Exact|Approximate) comparison of (?P<failed>.{1,100}?): FAILED"
    r"|\b(?P<test>DETERMINISTIC|APPROXIMATE) test for metric (?P<passed>.{1,100}?): PASSED)\s*$"
)
_EMPTY = pattern(
    r"\bMetric (?P<metric>.{1,100}?) has no (?:finite )?values(?: in the golden file| after its warmup window)?\.$"
)
_MOST_METRICS = 24
#: A line may have been cut off inside a number: what follows the last comma is then not the value that was printed.
_WHOLE_LINE = 8000


@dataclass
class _Told:
    exact: bool | None = None
    approximate: bool | None = None
    actual: dict[int, float] = field(default_factory=dict)
    golden: dict[int, float] = field(default_factory=dict)


class ComparisonReader:
    """Feed it the lines of one run of the check; `verdicts` are the lines in which the check gave its own."""

    def __init__(self) -> None:
        """Begin before any line."""
        self._metrics: dict[str, _Told] = {}
        self._pending: dict[str, dict[int, float]] = {}
        self.verdicts: list[str] = []

    def feed(self, text: str) -> bool:
        """Take a line if it is one of the check's own."""
        if " values: " in text and (values := _VALUES.search(text)):
            self._pending[values["side"]] = _numbers(values["values"], cut=len(text) >= _WHOLE_LINE)
        elif (": FAILED" in text or ": PASSED" in text) and (verdict := _VERDICT.search(text)):
            self._note(verdict)
            if len(self.verdicts) < _MOST_METRICS:
                self.verdicts.append(text.strip())
        elif " has no " in text and (empty := _EMPTY.search(text)):
            self._told(empty["metric"]).exact = False
        else:
            return False
        return True

    def comparison(self) -> GoldenComparison | None:
        """Return what differs, the metrics in the order of the check; None if it said nothing of the kind."""
        differences = tuple(_difference(metric, told) for metric, told in self._metrics.items() if _is_bad(told))
        return GoldenComparison(judge(differences), differences, "log") if differences else None

    def _note(self, verdict: re.Match[str]) -> None:
        told = self._told(verdict["failed"] or verdict["passed"])
        passed = verdict["passed"] is not None
        if (verdict["kind"] or verdict["test"]).lower() in ("exact", "deterministic"):
            told.exact = passed
        else:
            told.approximate = passed
        if not passed and self._pending:
            told.actual, told.golden = self._pending.get("Actual", {}), self._pending.get("Golden", {})
        self._pending = {}

    def _told(self, metric: str) -> _Told:
        if metric not in self._metrics and len(self._metrics) >= _MOST_METRICS:
            return _Told()
        return self._metrics.setdefault(metric, _Told())


def _is_bad(told: _Told) -> bool:
    return told.exact is False or told.approximate is False


def _difference(metric: str, told: _Told) -> MetricDifference:
    known = {step: told.golden[step] for step in told.golden if step in told.actual}
    if not known:
        return MetricDifference(metric, told.exact, told.approximate, steps_known=False)
    # The check has already reduced the times of many steps to one value: they are compared as they were printed.
    found = compare("" if metric == "iteration-time" else metric, Series(told.actual, False), Series(known, False))
    found = with_told(found, exact=told.exact, approximate=told.approximate)
    return MetricDifference(**{**found.__dict__, "metric": metric})


def _numbers(text: str, *, cut: bool) -> dict[int, float]:
    words = text.split(",")[: -1 if cut else None]
    numbers: dict[int, float] = {}
    for place, word in enumerate(words, start=1):
        try:
            numbers[place] = float(word)
        except ValueError:
            numbers[place] = MISSING
    return numbers
