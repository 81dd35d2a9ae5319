"""Where nothing convinces: what the ranks saw that may have been the cause, the best guess first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzers.model import AlsoSeen, Category, Confidence, Diagnosis, Finding, Role
from analyzers.records import replace
from analyzers.verdict.fingerprint import normalise
from analyzers.verdict.story import RankStory

MOST = 3
_SURE = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


def with_candidates(diagnosis: Diagnosis, stories: Mapping[int, RankStory]) -> Diagnosis:
    """Put up to three candidates before what was seen besides, if the verdict is `unknown`.

    Their role is `cause` for what may have been one and was not believed, `consequence` for what follows a failure.
    """
    if diagnosis.category is not Category.UNKNOWN:
        return diagnosis
    found = _candidates(diagnosis, stories)
    told = {(one.file, one.line) for one in found}
    rest = tuple(one for one in diagnosis.also_seen if (one.file, one.line) not in told)
    return replace(diagnosis, also_seen=(*found, *rest))


def _candidates(diagnosis: Diagnosis, stories: Mapping[int, RankStory]) -> tuple[AlsoSeen, ...]:
    groups: dict[tuple[Category, Role, str], list[Finding]] = {}
    for finding in _seen(stories.values()):
        key = finding.category, finding.role, normalise(f"{finding.error.type}: {finding.error.message}")
        groups.setdefault(key, []).append(finding)
    known = diagnosis.evidence and (diagnosis.evidence.file, diagnosis.evidence.line)
    alike = [found for found in groups.values() if all((f.evidence.file, f.evidence.line) != known for f in found)]
    suspects = {*diagnosis.culprit_ranks}

    def weight(found: list[Finding]) -> tuple[bool, bool, int, bool, int, str, int]:
        """A cause of its own kind, on a suspect, the surer one; then the later line: what was survived stands early."""
        first = found[0]
        return (
            first.role is not Role.CAUSE,
            not suspects & {f.rank for f in found},
            _SURE.index(first.confidence),
            first.category is Category.UNKNOWN,
            -max(f.evidence.line for f in found),
            first.evidence.file,
            first.evidence.line,
        )

    return tuple(_told(found) for found in sorted(alike, key=weight)[:MOST])


def _seen(stories: Iterable[RankStory]) -> Iterable[Finding]:
    for story in stories:
        own = (story.first, story.aside, *story.doubted)
        yield from {(f.evidence.file, f.evidence.line): f for f in reversed(own) if f is not None}.values()


def _told(found: list[Finding]) -> AlsoSeen:
    first = found[0]
    on = tuple(sorted({f.rank for f in found if f.rank is not None}))
    return AlsoSeen(first.category, on, first.role, first.evidence.file, first.evidence.line)
