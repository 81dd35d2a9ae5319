"""Flight Recorder dumps in an artifact decide about a hang: they know what each rank entered, logs only who waited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from analyzers.model import Category, Error, Evidence, Finding, Role, Skipped, Source
from analyzers.reading.layout import FLIGHT_DUMP
from analyzers.records import replace
from analyzers.verdict.accusation import Blame

if TYPE_CHECKING:
    from analyzers.parsers.flight_recorder_model import Dump, HangVerdict


def read_dumps(sources: Iterable[Source]) -> tuple[list[Dump], list[Skipped]]:
    """Read all dumps of an artifact, and tell which could not be read."""
    found = [source for source in sources if FLIGHT_DUMP.search(source.name)]
    if not found:
        return [], []
    # Few artifacts hold a dump, and reading one takes a library that is slow to load.
    from analyzers.parsers.flight_recorder import read_dump  # noqa: PLC0415
    from analyzers.parsers.flight_recorder_model import Unreadable  # noqa: PLC0415

    dumps, skipped = [], []
    for source in found:
        read = read_dump(source)
        if isinstance(read, Unreadable):
            skipped.append(Skipped(read.name, read.why))
        else:
            dumps.append(read)
    return dumps, skipped


def is_open(blame: Blame | None) -> bool:
    """Whether dumps may still decide: nobody is blamed yet, or only for having been waited for."""
    return blame is None or blame.finding.category in (Category.COLLECTIVE_TIMEOUT, Category.UNKNOWN)


def decide_by_dumps(blame: Blame | None, dumps: Sequence[Dump]) -> Blame | None:
    """Return the blame with the culprits that the dumps show; unchanged if they show none."""
    if not dumps or not is_open(blame):
        return blame
    from analyzers.parsers.flight_recorder_verdict import diagnose_dumps  # noqa: PLC0415 (see `read_dumps`)

    verdict = diagnose_dumps(dumps)
    if not verdict.culprits:
        return blame
    culprits = verdict.culprit_ranks
    everyone = set(verdict.waiting) | {dump.rank for dump in dumps}
    if blame is not None:
        everyone |= {*blame.culprits, *blame.victims}
    finding = _finding(verdict, dumps) if blame is None else replace(blame.finding, role=Role.CAUSE)
    victims = tuple(sorted(everyone - set(culprits)))
    if blame is None:
        return Blame(finding, culprits, victims)
    finding = replace(finding, category=Category.COLLECTIVE_TIMEOUT, confidence=verdict.confidence)
    return replace(blame, finding=finding, culprits=culprits, victims=victims)


def _finding(verdict: HangVerdict, dumps: Sequence[Dump]) -> Finding:
    """No log tells of the hang: the culprit's own dump is the evidence, or any where it left none."""
    first = verdict.culprits[0].rank
    file = next((dump.name for dump in dumps if dump.rank == first), dumps[0].name)
    return Finding(
        Category.COLLECTIVE_TIMEOUT,
        Role.CAUSE,
        Error(None, verdict.sentence),
        Evidence(file, 1, (verdict.sentence,)),
        rank=first,
        confidence=verdict.confidence,
    )
