"""A finding, or a diagnosis alone, to JSON text and back, exactly."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from analyzers.model import Diagnosis
from handlers.context import JobFinding

_FINDING: TypeAdapter[JobFinding] = TypeAdapter(JobFinding)
_DIAGNOSIS: TypeAdapter[Diagnosis] = TypeAdapter(Diagnosis)


def to_text(finding: JobFinding) -> str:
    """Return JSON without any byte that a text column cannot hold (PostgreSQL takes no NUL).

    Not by pydantic's own writer, which makes null of a loss that is NaN.
    """
    return json.dumps(_FINDING.dump_python(finding, mode="json"))


def from_text(text: str) -> JobFinding:
    return _FINDING.validate_json(text)


def diagnosis_to_text(diagnosis: Diagnosis) -> str:
    """Return JSON as `to_text` does."""
    return json.dumps(_DIAGNOSIS.dump_python(diagnosis, mode="json"))


def diagnosis_from_text(text: str) -> Diagnosis:
    """Raise ValueError for what `diagnosis_to_text` did not write."""
    return _DIAGNOSIS.validate_json(text)
