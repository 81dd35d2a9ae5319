"""Which assertion of a kernel it was: the device prints it, the exception that comes later only that there was one."""

from __future__ import annotations

from collections.abc import Container, Sequence

from analyzers.model import Error, Finding
from analyzers.parsers.readings import StreamReading
from analyzers.records import replace
from analyzers.verdict.findings import excerpt

#: CUDA's words for it, whoever raised them.
_ASSERTED = "device-side assert triggered"
#: The rule of config/rules that knows the device's own line.
_RULE = "device-assert-line"


def with_assertion(finding: Finding | None, streams: Sequence[StreamReading], passed: Container[str]) -> Finding | None:
    """Return the finding with the assertion that its rank printed as the second line of its message.

    Args:
        streams: of that rank; the device prints on stderr, pytest its report on stdout.
        passed: tests that passed; a child of theirs may assert on purpose.
    """
    if finding is None or _ASSERTED not in finding.error.message:
        return finding
    told = (mark for stream in streams for mark in stream.marks if mark.match.rule.id == _RULE)
    mark = next((mark for mark in told if mark.during not in passed), None)
    if mark is None or mark.match.message in finding.error.message:
        return finding
    first, *rest = finding.error.message.split("\n")
    error = Error(finding.error.type, "\n".join([first, mark.match.message, *rest]))
    head, *others = finding.evidence.excerpt or (first,)
    shown = (head, *excerpt(mark.match.message), *others)
    return replace(finding, error=error, evidence=replace(finding.evidence, excerpt=shown))
