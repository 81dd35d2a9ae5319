"""Who hung the job: all ranks' dumps in, the accused out.

Waiting is followed to its end. A rank that is late in one group because it waits in another is excused; who is left at
the end of a chain and waits for nobody is accused, and so is who entered what its peers finished or did something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from analyzers.model import Confidence
from analyzers.parsers.flight_recorder_mismatch import find_mismatches
from analyzers.parsers.flight_recorder_model import Culprit, Dump, HangVerdict, Reason
from analyzers.parsers.flight_recorder_progress import Board, lay_out
from analyzers.parsers.flight_recorder_stalls import find_lagging, find_stalled, find_stopped, find_together
from analyzers.parsers.flight_recorder_waits import (
    Edges,
    Wait,
    accuse_in,
    edges_of,
    edges_of_the_absent,
    edges_of_the_blocked,
    find_waits,
    sinks,
)
from analyzers.parsers.flight_recorder_words import in_words
from analyzers.records import replace

_WORST_FIRST = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def diagnose_dumps(dumps: Sequence[Dump], *, world_size: int | None = None) -> HangVerdict:
    """Return who hung the job that left these dumps.

    Args:
        dumps: any order; of two by one rank the newer counts. All of one attempt.
        world_size: how many ranks the job had, None if unknown: then the groups' members are all there were.
    """
    board = lay_out(_newest_of_each_rank(dumps))
    waits = find_waits(board)
    known = {rank for group in board.groups.values() for rank in group.ranks} | set(range(world_size or 0))
    absent = tuple(sorted(known - board.ranks))
    accused = _accuse(board, waits)
    culprits = tuple(each for each in accused if each.confidence is not Confidence.LOW)
    doubtful = tuple(each for each in accused if each.confidence is Confidence.LOW)
    if not culprits:  # nothing better is known; the confidence says how little that is
        culprits, doubtful = (doubtful, ()) if _tells_apart(doubtful, board) else ((), doubtful)
    named = {each.rank for each in (*culprits, *doubtful)}
    waiting = tuple(sorted({wait.rank for wait in waits} - named))
    confidence = min((each.confidence for each in culprits), key=_WORST_FIRST.index, default=Confidence.LOW)
    first = next(iter((*culprits, *doubtful)), None)
    return HangVerdict(
        culprits,
        doubtful,
        waiting,
        absent,
        confidence,
        in_words(culprits, doubtful, waiting, absent),
        *((first.group, first.seq, first.operation, first.sizes) if first else ()),
    )


def _newest_of_each_rank(dumps: Iterable[Dump]) -> list[Dump]:
    """A rank that dumps twice (on an exception, then at the end) is judged by the later one."""
    newest: dict[int, Dump] = {}
    for dump in sorted(dumps, key=lambda dump: max((entry.created_ns for entry in dump.entries), default=0)):
        newest[dump.rank] = dump
    return [newest[rank] for rank in sorted(newest)]


def _tells_apart(accused: Sequence[Culprit], board: Board) -> bool:
    """Accusing most ranks for arriving or for having no dump says nothing; that they did different things does."""
    members = {rank for group in board.groups.values() for rank in group.ranks}
    shown = any(each.reason not in (Reason.TOGETHER, Reason.ABSENT, Reason.ORDER) for each in accused)
    pair = len(accused) == 2 and accused[0].reason is Reason.ORDER
    return shown or pair or 2 * len({each.rank for each in accused}) <= len(members)


def _accuse(board: Board, waits: Sequence[Wait]) -> list[Culprit]:
    found: dict[int, Culprit] = {}
    for each in (*find_mismatches(board), *find_stalled(board)):
        if each.rank not in found or found[each.rank].confidence is Confidence.LOW:
            found[each.rank] = each
    edges = _edges(board, waits, found)
    for members in sinks(edges):
        for each in _at_the_end(members, board, waits) if not members & set(found) else ():
            found[each.rank] = each
    for each in find_stopped(board, waits):
        found.setdefault(each.rank, each)
    if not found:
        found = {each.rank: each for each in find_lagging(board) or find_together(board, waits)}
    return [_weighed(found[rank], found, board) for rank in sorted(found)]


def _weighed(accused: Culprit, others: Mapping[int, Culprit], board: Board) -> Culprit:
    """Doubt the accusation of a rank for having no dump.

    Beside a rank that its own dump convicts it is a suspect: a dump is lost more often than two ranks fail. And where
    other ranks have no dump either, and are not accused for it, dumps do get lost.
    """
    if accused.reason is not Reason.ABSENT or accused.confidence is Confidence.LOW:
        return accused
    if any(each.confidence is Confidence.HIGH and each.reason is not Reason.ABSENT for each in others.values()):
        return replace(accused, confidence=Confidence.LOW)
    members = {rank for group in board.groups.values() for rank in group.ranks}
    return replace(accused, confidence=Confidence.MEDIUM) if members - board.ranks - set(others) else accused


def _edges(board: Board, waits: Sequence[Wait], accused: Iterable[int]) -> Edges:
    edges: Edges = {}
    for more in (
        edges_of(waits),
        edges_of_the_absent(waits, accused),
        edges_of_the_blocked(board, waits, accused),
    ):
        for rank, targets in more.items():
            edges.setdefault(rank, set()).update(targets)
    for rank in accused:
        edges[rank] = set()  # it has a fault of its own: what it waits for is no excuse
    return edges


def _at_the_end(members: frozenset[int], board: Board, waits: Sequence[Wait]) -> list[Culprit]:
    """Accuse those at the end of a chain of waits, if they are awaited and wait for nothing themselves."""
    if gone := members - board.ranks:  # what they may have waited for is a guess, and it leads back to them
        return [each for rank in sorted(gone) for each in _absent(rank, board, waits)]
    if len(members) > 1:
        return _in_a_ring(members, board, waits)
    (rank,) = members
    awaiting = [wait for wait in waits if rank in wait.awaited]
    if not awaiting or rank in board.first_open:
        return []
    return [_behind(rank, board, awaiting, Reason.BEHIND, Confidence.HIGH)]


def _absent(rank: int, board: Board, waits: Sequence[Wait]) -> list[Culprit]:
    """Accuse a rank without a dump by waits that nothing earlier held up."""
    awaiting = [wait for wait in waits if rank in wait.awaited and _stands_in(wait, board)]
    if not awaiting:
        return []
    group = max((wait.group for wait in awaiting), key=lambda group: len(group.ranks))
    few = 2 * len(set(group.ranks) - board.ranks) <= len(group.ranks)
    return [_behind(rank, board, awaiting, Reason.ABSENT, Confidence.HIGH if few else Confidence.LOW)]


def _in_a_ring(members: frozenset[int], board: Board, waits: Sequence[Wait]) -> list[Culprit]:
    """Accuse within ranks that wait for each other.

    Sends and receives are issued ahead and block no process by themselves: who has only those open, while peers miss it
    in a collective, has stopped. Else what a rank stands at first counts, not what it issued behind that.
    """
    stand = {wait.rank for wait in waits if not wait.is_transfer}
    missed = {
        rank: [wait for wait in waits if rank in wait.missing and not wait.is_transfer] for rank in members - stand
    }
    silent = [rank for rank in sorted(missed) if missed[rank]]
    if silent and 2 * len(silent) <= len(members):
        return [_behind(rank, board, missed[rank], Reason.BEHIND, Confidence.MEDIUM) for rank in silent]
    return _odd_one_out(members, board, waits)


def _odd_one_out(members: frozenset[int], board: Board, waits: Sequence[Wait]) -> list[Culprit]:
    """Accuse whom most of a ring wait for first, else who stands in a send, else all of the ring."""
    first = {wait.rank: wait for wait in waits if wait.rank in members and _stands_in(wait, board)}
    leading = edges_of(first.values())
    for rank, targets in edges_of_the_blocked(board, first.values(), ()).items():
        leading.setdefault(rank, set()).update(targets)
    inner = {rank: leading.get(rank, set()) & members for rank in members}
    if any(len(ring) == 1 for ring in sinks(inner)):
        return []  # ends where all have arrived
    votes = Counter(target for targets in inner.values() for target in targets)
    (odd, most), (_, next_most) = votes.most_common(2)
    if odd in first and most > next_most and 2 * most > len(members):
        return [accuse_in(first[odd], Reason.ELSEWHERE, Confidence.MEDIUM)]
    idle = [rank for rank in sorted(first) if first[rank].sends]
    if idle and 2 * len(idle) <= len(members):
        return [accuse_in(first[rank], Reason.ELSEWHERE, Confidence.MEDIUM) for rank in idle]
    ring = {rank for some in sinks(inner) for rank in some}
    return [accuse_in(first[rank], Reason.ORDER, Confidence.LOW) for rank in sorted(ring & set(first))]


def _stands_in(wait: Wait, board: Board) -> bool:
    return wait.record is not None and wait.record == board.first_open.get(wait.rank)


def _behind(rank: int, board: Board, awaiting: Sequence[Wait], reason: Reason, confidence: Confidence) -> Culprit:
    """Accuse by the operation that shows it best: nobody else is excused for it, and most ranks stand in it first."""
    places: dict[tuple[str, int], list[Wait]] = {}
    for wait in awaiting:
        places.setdefault((wait.group.name, wait.seq), []).append(wait)
    most = max(
        places.values(),
        key=lambda each: (
            not each[0].missing.intersection(board.first_open),
            sum(_stands_in(wait, board) for wait in each),
            len(each),
            -each[0].seq,
        ),
    )
    first = min(most, key=lambda wait: wait.rank)
    sure = all(wait.sure for wait in most) or confidence is not Confidence.HIGH
    return replace(accuse_in(first, reason, confidence if sure else Confidence.MEDIUM), rank=rank)
