"""An accusation made out in full: the culprits given, who are the victims, which tests failed, what else was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzers.model import AlsoSeen, Category, Finding, Role
from analyzers.parsers.job_report import ProcessExit
from analyzers.records import dataclass
from analyzers.verdict.story import RankStory

SIGTERM = -15


@dataclass(frozen=True)
class Exits:
    """What the launcher told, and in which file: exits by the summary, the processes by rank."""

    file: str = ""
    exits: tuple[ProcessExit, ...] = ()
    rank_of_pid: Mapping[int, int] | None = None
    ended: int = 0  # processes that the launcher ended


@dataclass(frozen=True)
class Blame:
    """The verdict over the ranks of one start; `finding` is the primary one. Sorted, disjoint."""

    finding: Finding
    culprits: tuple[int, ...]
    victims: tuple[int, ...]
    silent: tuple[int, ...] = ()
    tests: tuple[str, ...] = ()
    also: tuple[AlsoSeen, ...] = ()


def make_out(
    stories: Mapping[int, RankStory], culprits: Sequence[int], finding: Finding, exits: Exits | None = None
) -> Blame:
    """Fill in what follows from the culprits; nobody is a victim where nobody is to blame."""
    everyone = set(stories) | {e.rank for e in (exits.exits if exits else ())}
    victims = tuple(sorted(everyone - set(culprits)))
    silent = tuple(rank for rank, story in stories.items() if story.last is None and rank not in culprits)
    return Blame(
        finding,
        tuple(sorted(culprits)),
        victims if culprits else (),
        silent=tuple(rank for rank in silent if rank not in victims),
        tests=_tests(stories, culprits, finding),
        also=_also(stories, culprits, finding),
    )


def _tests(stories: Mapping[int, RankStory], culprits: Sequence[int], finding: Finding) -> tuple[str, ...]:
    """The tests that failed on the culprits; one that began and never ended failed by crash or hang."""
    if finding.category is Category.COLLECTION:
        return ()
    blamed = [stories[rank] for rank in culprits if rank in stories]
    failed = [test for story in blamed for test in story.failed]
    ends_process = finding.category in (Category.CRASH_NATIVE, Category.COLLECTIVE_TIMEOUT, Category.HOST_OOM)
    if not failed or ends_process:
        failed += [story.running for story in blamed if story.running]
    if not failed and ends_process:
        failed += [story.running for story in stories.values() if story.running]
    return tuple(dict.fromkeys(failed))


def _also(stories: Mapping[int, RankStory], culprits: Sequence[int], finding: Finding) -> tuple[AlsoSeen, ...]:
    groups: dict[tuple[Category, Role], list[Finding]] = {}
    for rank, story in stories.items():
        if story.first is not None and rank not in culprits and story.first is not finding:
            role = Role.CONSEQUENCE
            groups.setdefault((story.first.category, role), []).append(story.first)
    return tuple(
        AlsoSeen(
            category,
            tuple(sorted(f.rank for f in found if f.rank is not None)),
            role,
            found[0].evidence.file,
            found[0].evidence.line,
        )
        for (category, role), found in groups.items()
    )
