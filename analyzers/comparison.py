"""The nouns of a comparison with golden values: which metrics differ, from which step on, by how much."""

from __future__ import annotations

from enum import StrEnum

from analyzers.records import dataclass


class Drift(StrEnum):
    """What a difference looks like. It is read off the numbers; whether they are right is for people to say."""

    DRIFT = "drift"  # the approximate check passes, and the exact one fails in the fourth digit or later
    REGRESSION = "regression"
    MISSING = "missing"  # a metric, or values of it, are not there to be compared
    UNCLEAR = "unclear"  # a check failed, and no value that it compared is known


@dataclass(frozen=True)
class MetricDifference:
    """One metric. `exact` and `approximate` say whether that check passed; None where it was not made or not told.

    `first_step` is the first step that differs. Where `steps_known` is false the values came without step numbers, and
    it counts the compared values from 1. `largest_relative` is |actual - golden| / |golden|, 0.01 for one percent; None
    where a value is NaN or infinite, is missing, or its golden value is 0. `same_digits`: as many leading digits agree
    at every step.
    """

    metric: str
    exact: bool | None = None
    approximate: bool | None = None
    compared: int = 0
    differing: int = 0
    first_step: int | None = None
    steps_known: bool = True
    largest_relative: float | None = None
    same_digits: int | None = None
    actual: float | None = None  # at `first_step`
    golden: float | None = None


@dataclass(frozen=True)
class GoldenComparison:
    """All metrics that differ. `read_from` tells where the values came from: "files" or "log"."""

    kind: Drift
    metrics: tuple[MetricDifference, ...]
    read_from: str
