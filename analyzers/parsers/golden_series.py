"""Two series of one metric held against each other, as Megatron-LM's own check does it.

Source: Megatron-LM, tests/functional_tests/python_test_utils/common.py (pipeline: exact comparison, tolerance, the few
steps that may lie outside of it) and test_pretraining_regular_pipeline.py (CHECK_THRESHOLDS).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping

from analyzers.comparison import Drift, MetricDifference
from analyzers.records import dataclass, replace

#: What the check takes for a value that is not there, or that is no number.
MISSING = math.inf
#: Relative tolerance of the approximate check; metrics that are not named have this one.
RTOL = 0.05
_RTOLS = {"num-zeros": 0.20}
#: Times and memory are never the same twice: nothing compares them exactly.
_APPROXIMATE_ONLY = frozenset({"iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes", "throughput"})
#: Counts, whose last digits say nothing: for them the approximate check alone tells drift.
_COUNTS = frozenset({"num-zeros"})
#: Steps outside the tolerance that the approximate check allows: one in a hundred, at least 1, at most 50.
_MOST_OUTSIDE = 50
#: 8.41 - 8.40 is a little less than 0.01.
_ROUNDING = 1e-9
#: This many leading digits agree in what is called drift.
_SAME_DIGITS = 3


@dataclass(frozen=True)
class Series:
    """The values of one metric by step; `steps_known` is false where the keys are mere positions, from 1."""

    values: Mapping[int, float]
    steps_known: bool = True


def compare(metric: str, actual: Series, golden: Series) -> MetricDifference:
    """Return what differs between two series; steps that only the actual one has are not compared."""
    pairs = [(step, actual.values.get(step, MISSING), value) for step, value in sorted(golden.values.items())]
    if metric == "iteration-time":
        pairs = _steady(pairs)
    differing = [pair for pair in pairs if pair[1] != pair[2]]  # as for the check: NaN is like nothing
    first = differing[0] if differing else None
    return MetricDifference(
        metric,
        exact=None if metric in _APPROXIMATE_ONLY else not differing,
        approximate=_is_close(pairs, _RTOLS.get(metric, RTOL)),
        compared=len(pairs),
        differing=len(differing),
        first_step=first[0] if first else None,
        steps_known=actual.steps_known and golden.steps_known,
        largest_relative=_largest(differing),
        same_digits=_same_digits(differing),
        actual=_finite(first[1]) if first else None,
        golden=_finite(first[2]) if first else None,
    )


def judge(differences: Iterable[MetricDifference]) -> Drift:
    """Tell drift from regression, over the metrics of which a check failed."""
    failed = [one for one in differences if one.exact is False or one.approximate is False]
    known = [one for one in failed if one.compared]
    if failed and not known:
        return Drift.MISSING if all(one.approximate is None for one in failed) else Drift.UNCLEAR
    return Drift.DRIFT if known and all(_drifts(one) for one in known) else Drift.REGRESSION


def with_told(difference: MetricDifference, *, exact: bool | None, approximate: bool | None) -> MetricDifference:
    """Take over what the check itself said: it knows its own tolerances."""
    return replace(
        difference,
        exact=difference.exact if exact is None else exact,
        approximate=difference.approximate if approximate is None else approximate,
    )


def _drifts(one: MetricDifference) -> bool:
    if one.approximate is not True:
        return False
    return one.metric in _COUNTS or (one.same_digits is not None and one.same_digits >= _SAME_DIGITS)


def _is_close(pairs: list[tuple[int, float, float]], rtol: float) -> bool | None:
    if not pairs:
        return None
    outside = sum(not _within(actual, golden, rtol) for _, actual, golden in pairs)
    allowed = min(max(len(pairs) // 100, 1), _MOST_OUTSIDE) if len(pairs) > 1 else 0
    return outside <= allowed


def _within(actual: float, golden: float, rtol: float) -> bool:
    if math.isinf(golden) or math.isinf(actual):
        return actual == golden
    return abs(actual - golden) <= rtol * abs(golden)  # false for NaN


def _largest(differing: list[tuple[int, float, float]]) -> float | None:
    relative = [abs(actual - golden) / abs(golden) if golden else math.inf for _, actual, golden in differing]
    return max(relative) if relative and all(math.isfinite(one) for one in relative) else None


def _same_digits(differing: list[tuple[int, float, float]]) -> int | None:
    """Return how many leading digits agree at worst: a difference below one unit of the third leaves three."""
    digits = []
    for _, actual, golden in differing:
        if not golden or not math.isfinite(actual) or not math.isfinite(golden):
            return None
        units = math.floor(math.log10(abs(golden))) + 1
        digits.append(max(0, math.floor(units - math.log10(abs(actual - golden)) - _ROUNDING)))
    return min(digits, default=None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _steady(pairs: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Times are compared by their median over steady steps, as one value; it stands at the first of these steps."""
    known = [pair for pair in pairs if math.isfinite(pair[2])]
    if not known:
        return []
    window = range(5, 21) if known[-1][0] <= 25 else range(30, 46)
    steady = [pair for pair in known if pair[0] in window] or [pair for pair in known if pair[0] >= window.start][:4]
    if not steady:
        return []
    actual, golden = (statistics.median(pair[place] for pair in steady) for place in (1, 2))
    return [(steady[0][0], actual, golden)]
