"""Files of golden values, and of the values that a run has reached: one series per metric.

    {"lm loss": {"start_step": 1, "end_step": 100, "step_interval": 5, "values": {"1": 10.87, "5": 10.86, ...}}}

Older files have a list of values. A value may be a word ("nan"). Files of inference tests (one entry per request) hold
no series and give none.
Source: Megatron-LM, tests/functional_tests/python_test_utils/common.py, GoldenValueMetric.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from analyzers.model import Skipped, Source
from analyzers.parsers.golden_series import MISSING, Series
from analyzers.reading.whole_text import whole

MAX_BYTES = 16 * 1024**2


class _Metric(BaseModel):
    model_config = ConfigDict(frozen=True)

    start_step: int = 1
    step_interval: int = 1
    values: dict[int, float | str | None] | list[float | str | None]

    def series(self) -> Series:
        values = self.values
        if isinstance(values, list):
            values = {self.start_step + place * self.step_interval: value for place, value in enumerate(values)}
        return Series({step: value if isinstance(value, float) else MISSING for step, value in values.items()})


def read_series(source: Source) -> dict[str, Series] | Skipped:
    """Return the series of all metrics in a file; why it could not be read if it could not. Nothing is raised."""
    held = bytearray()
    for chunk in source.chunks():
        held += chunk
        if len(held) > MAX_BYTES:
            return Skipped(source.name, f"is larger than {MAX_BYTES // 1024**2} MiB")
    try:
        document = json.loads(held)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return Skipped(source.name, "is no JSON")
    if not isinstance(document, dict):
        return Skipped(source.name, "holds no metrics")
    found: dict[str, Series] = {}
    for metric, entry in document.items():
        try:
            found[whole(metric)] = _Metric.model_validate(entry).series()
        except ValidationError:
            continue  # not a series: a request of an inference test, or a setting beside the metrics
    return found
