"""Who failed first, and who only died of it: the ranks of one start compared.

Roles come before times: times exist only in some lines, the launcher's have whole seconds, and files have no order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.parsers.job_report import ProcessExit
from analyzers.parsers.native import signal_name
from analyzers.records import replace
from analyzers.verdict.accusation import SIGTERM, Blame, Exits, make_out
from analyzers.verdict.first_cause import EXPLAINS, earliest, first_cause, is_same, may_be_a_peers
from analyzers.verdict.hang import find_laggards
from analyzers.verdict.story import RankStory

#: What the node says about a process outranks what the process says about itself.
NODE_LEVEL = frozenset({Category.GPU_HARDWARE, Category.HOST_OOM})

#: pytest's exit code when nothing was collected or all was deselected.
_NO_TESTS = 5


def assign_blame(
    stories: Mapping[int, RankStory], exits: Exits, node: Sequence[tuple[int | None, Finding]]
) -> Blame | None:
    """Find the culprits of one start; None if nobody failed.

    Args:
        stories: by global rank.
        node: what the node's kernel or driver said, with the rank whose process it named (None: no process).
    """
    stories = {rank: stories[rank] for rank in sorted(stories)}
    return (
        _by_node(stories, exits, node)
        or _by_mismatch(stories)
        or _by_cause(stories, exits)
        or _by_signal(stories, exits)
        or _by_cause(stories, exits, own=False)
        or _by_accusation(stories)
        or _by_device(stories, exits, node)
        or _by_hang(stories, exits)
        or _by_exit_crash(stories, exits)
        or _by_cause(stories, exits, logged=True, own=False)
        or _by_exit_code(stories, exits)
        or _by_consequence(stories, exits)
    )


def _by_node(
    stories: Mapping[int, RankStory], exits: Exits, node: Sequence[tuple[int | None, Finding]]
) -> Blame | None:
    """The kernel and the driver outrank what the process itself saw, if they name one of our processes."""
    failed = any(story.first for story in stories.values()) or any(e.exit_code for e in exits.exits)
    if not failed:
        return None
    # The kernel says why it looks for somebody to kill, and then whom it killed: the latter is the error.
    for rank, finding in sorted(node, key=lambda told: told[1].rule == "kernel-oom-cgroup"):
        if finding.category not in NODE_LEVEL:
            continue
        suspects = (rank,) if rank is not None else _killed(exits) if finding.category is Category.HOST_OOM else ()
        if suspects:
            return make_out(stories, suspects, replace(finding, rank=suspects[0]), exits)
    return None


def _by_device(
    stories: Mapping[int, RankStory], exits: Exits, node: Sequence[tuple[int | None, Finding]]
) -> Blame | None:
    """The driver reports an error that explains why ranks lost or waited for a peer.

    A broken device need not name a process; what a program did wrong counts where it names one of ours.
    """
    if not any(story.first for story in stories.values()):
        return None
    for rank, finding in node:
        if rank is not None and finding.category is Category.CUDA_ERROR:
            return make_out(stories, (rank,), replace(finding, rank=rank, confidence=Confidence.MEDIUM), exits)
    broken = next((finding for _, finding in node if finding.category is Category.GPU_HARDWARE), None)
    if broken is None:
        return None
    culprits, _ = find_laggards(stories) or ((), None)
    return make_out(stories, culprits, replace(broken, confidence=Confidence.MEDIUM), exits)


def _killed(exits: Exits) -> tuple[int, ...]:
    return tuple(sorted(e.rank for e in exits.exits if signal_name(e.exit_code) == "SIGKILL"))


def _by_mismatch(stories: Mapping[int, RankStory]) -> Blame | None:
    """Every rank reports its own collective; those that disagree with the most are to blame."""
    signatures = {rank: story.signature for rank, story in stories.items() if story.signature and story.first}
    if not signatures:
        return None
    counts = Counter(signatures.values()).most_common()
    agreed = counts[0][0] if len(counts) > 1 and counts[0][1] > counts[1][1] else None
    culprits = tuple(rank for rank, signature in signatures.items() if signature != agreed)
    finding = stories[culprits[0]].first
    if finding is not None and agreed is None:
        finding = replace(finding, confidence=Confidence.MEDIUM)  # one against one: nobody knows who is right
    return make_out(stories, culprits, finding) if finding else None


def _by_cause(
    stories: Mapping[int, RankStory], exits: Exits, *, logged: bool = False, own: bool = True
) -> Blame | None:
    """The ranks with a cause of their own; what was merely logged counts only when nothing better is known.

    Args:
        own: leave alone what may be no more than the end of another process.
    """
    causes = {
        rank: story.first
        for rank, story in stories.items()
        if story.first
        and story.first.role is Role.CAUSE
        and (story.first.confidence is Confidence.LOW) is logged
        and not story.at_exit
        and not story.named
    }
    if not causes or (own and all(map(may_be_a_peers, causes.values()))):
        return None
    chosen = first_cause(stories, causes, exits)
    alike = tuple(rank for rank, finding in causes.items() if is_same(finding, chosen))
    finding = earliest([causes[rank] for rank in alike])
    others = [one for rank, one in causes.items() if rank not in alike and not may_be_a_peers(one)]
    if others and chosen.category not in EXPLAINS and finding.confidence is Confidence.HIGH:
        finding = replace(finding, confidence=Confidence.MEDIUM)  # something else failed elsewhere on its own
    return make_out(stories, alike, finding, exits)


def _by_signal(stories: Mapping[int, RankStory], exits: Exits) -> Blame | None:
    """A process that a signal ended and that had nothing to say about it."""
    hung = any(story.timeouts for story in stories.values())
    silent = [
        e
        for e in exits.exits
        if e.exit_code < 0 and e.exit_code != SIGTERM and not _explained(stories.get(e.rank), e, hung=hung)
    ]
    if not silent:
        return None
    first = min(silent, key=lambda e: (not e.root_cause, e.rank))
    name = signal_name(first.exit_code) or ""
    alike = tuple(sorted({e.rank for e in silent if e.exit_code == first.exit_code}))
    finding = Finding(
        Category.HOST_OOM if name == "SIGKILL" else Category.CRASH_NATIVE,
        Role.CAUSE,
        Error(name, f"exitcode  : {first.exit_code} ({name})"),
        Evidence(exits.file, first.line, (f"rank {first.rank}: exit code {first.exit_code} ({name})",)),
        rank=first.rank,
        confidence=Confidence.MEDIUM,
    )
    return make_out(stories, alike, finding, exits)


def _explained(story: RankStory | None, told: ProcessExit, *, hung: bool) -> bool:
    """Whether it is known why a rank ended. A watchdog aborts its process, also where the log of it was lost."""
    aborted = signal_name(told.exit_code) == "SIGABRT"
    if story is None:
        return aborted and hung
    lost = story.last is None and hung
    return story.first is not None or (aborted and (bool(story.states) or story.aside is not None or lost))


def _by_accusation(stories: Mapping[int, RankStory]) -> Blame | None:
    """An error that names the ranks that failed to come."""
    accusers = [story for story in stories.values() if story.named and story.first]
    if not accusers:
        return None
    named = tuple(sorted({rank for story in accusers for rank in story.named}))
    own = [stories[rank].first for rank in named if rank in stories and stories[rank].first]
    finding = (
        earliest([finding for finding in own if finding]) if own else earliest([s.first for s in accusers if s.first])
    )
    return make_out(stories, named, finding)


def _by_hang(stories: Mapping[int, RankStory], exits: Exits) -> Blame | None:
    found = find_laggards(stories)
    if found is None:
        return None
    culprits, finding = found
    own = stories[culprits[0]].first if len(culprits) == 1 else None
    if own is not None and own.role is Role.CAUSE:
        # Its own stack shows what they waited for; or it is what the rank logged before it fell behind.
        stuck = own.category is Category.COLLECTIVE_TIMEOUT
        finding = replace(own, confidence=Confidence.MEDIUM) if stuck else own
    return make_out(stories, culprits, finding, exits)


def _by_exit_crash(stories: Mapping[int, RankStory], exits: Exits) -> Blame | None:
    """Everything was done, and then a process crashed: nobody died of it.

    A test may let a child crash on purpose, so the launcher's word decides; without it, there is doubt.
    """
    ended_badly = {e.rank for e in exits.exits if e.exit_code not in (0, SIGTERM)}
    crashed = {
        rank: story.first
        for rank, story in stories.items()
        if story.first and story.at_exit and (rank in ended_badly or not (exits.exits or story.in_child))
    }
    if not crashed:
        return None
    finding = earliest(list(crashed.values()))
    if not exits.exits:
        finding = replace(finding, confidence=Confidence.LOW)
    others = [story for rank, story in stories.items() if rank not in crashed]
    victims = tuple(story.rank for story in others if not story.finished)
    return Blame(finding, tuple(crashed), victims)


def _by_exit_code(stories: Mapping[int, RankStory], exits: Exits) -> Blame | None:
    """A process that left by itself without a word, while the others were ended or lost their peer."""
    told = [e for e in exits.exits if e.exit_code > 0 and not (stories.get(e.rank) and stories[e.rank].first)]
    if not told:
        return None
    first = min(told, key=lambda e: (not e.root_cause, e.rank))
    if first.at is not None:  # those that left later than the launcher's seconds can tell left because of it
        told = [e for e in told if e.at is None or (e.at - first.at).total_seconds() <= 1]
    known = [stories[e.rank] for e in told if e.rank in stories]
    no_tests = all(e.exit_code == _NO_TESTS for e in told) and bool(known) and not any(s.in_tests for s in known)
    why = "pytest found no test to run" if no_tests else "no error in the rank's log"
    finding = Finding(
        Category.COLLECTION if no_tests else Category.UNKNOWN,
        Role.CAUSE,
        Error(None, f"exitcode  : {first.exit_code}, {why}"),
        Evidence(exits.file, first.line, (f"rank {first.rank}: exit code {first.exit_code}",)),
        rank=first.rank,
        confidence=Confidence.MEDIUM if no_tests else Confidence.LOW,
    )
    return make_out(stories, tuple(sorted({e.rank for e in told})), finding, exits)


def _by_consequence(stories: Mapping[int, RankStory], exits: Exits) -> Blame | None:
    """Only peers complain: the one that says nothing is the first suspect, with little confidence."""
    told = [story.first for story in stories.values() if story.first and not story.in_child]
    if not told:
        failed = any(e.exit_code for e in exits.exits)
        told = [s.aside for s in stories.values() if s.aside and (failed or s.is_ended_by_monitor)]
    if not told:
        return None
    # Nobody but a person, or the CI service, interrupts a rank: a launcher ends the peers of a failed one otherwise.
    if interrupted := [found for found in told if found.error.type == "KeyboardInterrupt"]:
        return make_out(stories, (), replace(earliest(interrupted), confidence=Confidence.LOW), exits)
    finding = replace(earliest(told), confidence=Confidence.LOW)
    silent = tuple(
        rank for rank, story in stories.items() if not story.first and not story.aside and not story.finished
    )
    ended = {e.rank for e in exits.exits if e.exit_code == SIGTERM}
    suspects = tuple(rank for rank in silent if rank not in ended) or silent
    culprits = suspects if len(suspects) == 1 else ()
    if silent and finding.category is not Category.COLLECTIVE_TIMEOUT:
        finding = replace(finding, category=Category.UNKNOWN, retryable=None)  # why they fell silent, nobody says
    return make_out(stories, culprits, finding, exits)
