"""A finding to JSON text and back, exactly."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from handlers.context import JobFinding

_ADAPTER: TypeAdapter[JobFinding] = TypeAdapter(JobFinding)


def to_text(finding: JobFinding) -> str:
    """Return JSON without any byte that a text column cannot hold (PostgreSQL takes no NUL).

    Not by pydantic's own writer, which makes null of a loss that is NaN.
    """
    return json.dumps(_ADAPTER.dump_python(finding, mode="json"))


def from_text(text: str) -> JobFinding:
    return _ADAPTER.validate_json(text)
