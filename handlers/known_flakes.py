"""Failures of tests that a person recorded as flaky: said as evidence, with the issue; they still count as red."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analyzers.surroundings import Clue, ClueKind, Relation, RelationName

from .context import JobFinding


def with_flakes(findings: Sequence[JobFinding], flakes: Mapping[str, Mapping[str, Any]]) -> list[JobFinding]:
    """Relate each finding whose failed tests are all recorded to their issues; others stay as they are."""
    return [_with(finding, flakes) for finding in findings] if flakes else list(findings)


def _with(finding: JobFinding, flakes: Mapping[str, Mapping[str, Any]]) -> JobFinding:
    tests = finding.diagnosis.failed_tests
    known = {test: name for test in tests if (name := _record_of(test, flakes)) is not None}
    if not tests or len(known) < len(set(tests)):
        return finding
    clues = tuple(
        Clue(
            ClueKind.KNOWN_FLAKE,
            f"{name} is recorded as failing now and then: issue {flakes[name]['issue']}, by {flakes[name]['by']} on "
            f"{flakes[name]['at']}.",
        )
        for name in dict.fromkeys(known.values())
    )
    before = finding.diagnosis.relation
    evidence = (*clues, *(before.evidence if before is not None else ()))
    relation = Relation(RelationName.KNOWN_FLAKY, evidence)
    return replace(finding, diagnosis=replace(finding.diagnosis, relation=relation))


def _record_of(test: str, flakes: Mapping[str, Mapping[str, Any]]) -> str | None:
    """A record names a test id, without its parameters perhaps, or the end of one."""
    bare = test.split("[", 1)[0]
    for name in flakes:
        if name in {test, bare} or bare.endswith((f"/{name}", f"::{name}")):
            return name
    return None
