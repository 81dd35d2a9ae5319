"""Ranks that did come to an operation and yet hold it up: a dead device, a process that stopped while it waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from analyzers.model import Confidence
from analyzers.parsers.flight_recorder_model import Culprit, Group, Reason
from analyzers.parsers.flight_recorder_progress import Board, Call, GroupKey, Standing, Transfer, has_been_met, key_of
from analyzers.parsers.flight_recorder_waits import Wait, accuse_in, heads
from analyzers.parsers.flight_recorder_words import ranks_in_words
from analyzers.records import replace

#: No rank finishes one of these before all have entered it. A root may finish its broadcast alone, and an uneven
#: all_to_all leaves out ranks that it has nothing for.
_NEEDS_ALL = ("all_reduce", "allreduce", "all_gather", "_all_gather", "reduce_scatter", "_reduce_scatter", "barrier")


def find_stalled(board: Board) -> tuple[Culprit, ...]:
    """Accuse ranks that entered an operation and did not finish it though peers did, which takes everybody's part.

    A kernel that dies half-way leaves peers standing in the same operation. So a rank is certain only if it is the one
    that stands there, or if peers have finished a later operation, whose kernel runs on a rank after the earlier one.
    """
    lagging = {key: _lagging(standings, _NEEDS_ALL) for key, standings in board.standings.items()}
    alone = {ranks[0] for ranks in lagging.values() if len(ranks) == 1}
    alone |= {rank for key, ranks in lagging.items() for rank in ranks if _is_long_gone(rank, board.standings[key])}
    accused: dict[int, Culprit] = {}
    for key in sorted(lagging, key=lambda key: len(lagging[key])):
        ranks, standings = lagging[key], board.standings[key]
        for rank in set(ranks) & alone if alone.intersection(ranks) else _furthest_behind(ranks, standings):
            confidence = Confidence.HIGH if rank in alone else Confidence.MEDIUM
            accused.setdefault(rank, _stalled(board, key, rank, confidence))
    for call in _alone_and_open(board):
        accused.setdefault(call.rank, _accuse(call, Reason.STALLED, "needs no other rank", Confidence.HIGH))
    for transfers in board.transfers.values():
        for transfer in transfers:
            if _is_finished_by_peer(board, transfer):
                accused.setdefault(transfer.rank, _stalled_transfer(transfer))
    return tuple(accused[rank] for rank in sorted(accused))


def find_lagging(board: Board) -> tuple[Culprit, ...]:
    """Accuse ranks that did not finish what peers did, whatever it was, if nothing issued earlier holds them up.

    This is weaker: the peers may not have needed them.
    """
    found: dict[int, Culprit] = {}
    for key, standings in board.standings.items():
        for rank in _lagging(standings, ("",)):
            if standings[rank].calls[heads(standings)[rank]].record == board.first_open.get(rank):
                found.setdefault(rank, _stalled(board, key, rank, Confidence.MEDIUM))
    return tuple(found[rank] for rank in sorted(found)) if 2 * len(found) <= len(board.ranks) else ()


def _alone_and_open(board: Board) -> Iterable[Call]:
    """Collectives of one-rank groups that nothing issued earlier holds up: only the device itself can."""
    for standings in board.standings.values():
        for rank, head in heads(standings).items():
            call = standings[rank].calls.get(head)
            if call and call.group.ranks == (rank,) and call.record == board.first_open.get(rank):
                yield call


def _is_finished_by_peer(board: Board, transfer: Transfer) -> bool:
    """A finished receive had its send; a small send may finish alone, while the receiver is held up elsewhere."""
    shows = transfer.sends or board.first_open[transfer.rank] == transfer.entry.record
    other_end = transfer.peer, key_of(transfer.group), transfer.seq, not transfer.sends
    return shows and other_end not in board.open_ends and has_been_met(board, transfer) is True


def _stalled_transfer(transfer: Transfer) -> Culprit:
    return Culprit(
        transfer.rank,
        Reason.STALLED,
        transfer.group,
        transfer.seq,
        transfer.entry.operation,
        transfer.entry.input_sizes,
        f"finished on rank {transfer.peer}",
        confidence=Confidence.HIGH if transfer.sends else Confidence.MEDIUM,
        frames=transfer.entry.frames,
    )


def _lagging(standings: Mapping[int, Standing], operations: tuple[str, ...]) -> list[int]:
    most = _most(standings)
    found = []
    for rank, head in heads(standings).items():
        call = standings[rank].calls.get(head)
        if call is not None and head <= most and call.title.startswith(operations):
            found.append(rank)
    return sorted(found)


def _is_long_gone(rank: int, standings: Mapping[int, Standing]) -> bool:
    head, most = heads(standings)[rank], _most(standings)
    return any(
        head < number <= most and call.title.startswith(_NEEDS_ALL) for number, call in standings[rank].calls.items()
    )


def _most(standings: Mapping[int, Standing]) -> int:
    return max((standing.progress.completed or 0 for standing in standings.values()), default=0)


def _furthest_behind(ranks: Sequence[int], standings: Mapping[int, Standing]) -> list[int]:
    at = {rank: head for rank, head in heads(standings).items() if rank in ranks}
    last = [rank for rank, head in at.items() if head == min(at.values())]
    return last if 2 * len(last) <= len(standings) else []


def _stalled(board: Board, key: GroupKey, rank: int, confidence: Confidence) -> Culprit:
    standings = board.standings[key]
    call = standings[rank].calls[heads(standings)[rank]]
    finished = sorted(peer for peer, other in standings.items() if (other.progress.completed or 0) >= call.seq)
    return _accuse(call, Reason.STALLED, f"finished on {ranks_in_words(finished)}", confidence)


def find_stopped(board: Board, waits: Sequence[Wait]) -> tuple[Culprit, ...]:
    """Accuse ranks that wait like their peers for one operation but issued less after it than all of those.

    Ranks that run one program and wait for one thing run ahead to the same point; who did not had a reason of its own.
    """
    stands = {
        wait.rank: wait for wait in waits if not wait.is_transfer and wait.record == board.first_open.get(wait.rank)
    }
    found: dict[int, Culprit] = {}
    for standings in board.standings.values():
        alike: dict[tuple[Group, int], dict[int, int]] = {}
        for rank, standing in standings.items():
            # Without an open collective the counter may be one of sends, which differ by rank.
            ran_ahead = any(other.head is not None for other in standings.values())
            if rank in stands and ran_ahead and standing.progress.enqueued is not None:
                place = stands[rank].group, stands[rank].seq
                alike.setdefault(place, {})[rank] = standing.progress.enqueued
        for issued in alike.values():
            for rank in _short_of_the_usual(issued):
                if _blocked_only_like(rank, issued, waits):
                    expected = f"its peers went on, to #{max(issued.values())} where it issued #{issued[rank]}"
                    accused = accuse_in(stands[rank], Reason.STOPPED, Confidence.MEDIUM)
                    found.setdefault(rank, replace(accused, expected=expected))
    return tuple(found[rank] for rank in sorted(found))


def _short_of_the_usual(issued: Mapping[int, int]) -> list[int]:
    ((usual, count),) = Counter(issued.values()).most_common(1)
    # Somebody ahead of the usual shows that the ranks do not all run one program.
    if len(issued) < 3 or count * 3 < len(issued) * 2 or usual != max(issued.values()):
        return []
    return [rank for rank, number in issued.items() if number < usual]


def _blocked_only_like(rank: int, peers: Iterable[int], waits: Iterable[Wait]) -> bool:
    others = set(peers) - {rank}
    mine = {(wait.group, wait.seq) for wait in waits if wait.rank == rank and wait.awaited and not wait.is_transfer}
    theirs = {(wait.group, wait.seq) for wait in waits if wait.rank in others}
    return mine <= theirs and not any(wait.is_transfer and wait.awaited for wait in waits if wait.rank == rank)


def find_together(board: Board, waits: Sequence[Wait]) -> tuple[Culprit, ...]:
    """Where all arrived and nobody finished: who never started, else who is in all such operations, else all."""
    roots = [
        wait
        for wait in waits
        if not wait.awaited
        and wait.arrived
        and wait.record is not None
        and board.first_open.get(wait.rank) == wait.record
    ]
    standing = {_end(wait, wait.rank, wait.arrived) for wait in roots}
    complete = [wait for wait in roots if all(_end(wait, peer, {wait.rank}) in standing for peer in wait.arrived)]
    in_doubt = sorted({wait.rank for wait in complete})
    late = [wait for wait in complete if _is_late(board, wait)]
    if late and len({wait.rank for wait in late}) < len(in_doubt):
        return tuple(accuse_in(wait, Reason.NOT_STARTED, Confidence.MEDIUM) for wait in _one_each(late))
    shared = [rank for rank in in_doubt if all(rank == wait.rank or rank in wait.arrived for wait in complete)]
    if 0 < len(shared) < len(in_doubt):
        narrowed = [wait for wait in complete if wait.rank in shared]
        return tuple(accuse_in(wait, Reason.TOGETHER, Confidence.MEDIUM) for wait in _one_each(narrowed))
    return tuple(accuse_in(wait, Reason.TOGETHER, Confidence.LOW) for wait in _one_each(complete))


def _end(wait: Wait, rank: int, peers: Iterable[int]) -> tuple[object, ...]:
    """Name the part of `rank` in an operation; of a transfer, whose numbers differ by rank, by its peer."""
    return rank, wait.group, frozenset(peers) if wait.is_transfer else wait.seq


def _is_late(board: Board, wait: Wait) -> bool:
    """Tell whether a rank's own kernel is queued while a peer's runs; TORCH_NCCL_ENABLE_TIMING makes it visible."""
    if wait.is_transfer:
        return False
    standings = board.standings[wait.group.name, wait.group.ranks]
    states = {
        rank: standing.calls[wait.seq].operations[-1].state
        for rank, standing in standings.items()
        if wait.seq in standing.calls
    }
    return states.get(wait.rank) == "scheduled" and "started" in states.values()


def _one_each(waits: Iterable[Wait]) -> list[Wait]:
    return sorted({wait.rank: wait for wait in waits}.values(), key=lambda wait: wait.rank)


def _accuse(call: Call, reason: Reason, expected: str, confidence: Confidence) -> Culprit:
    first = call.operations[0]
    return Culprit(
        call.rank,
        reason,
        call.group,
        call.seq,
        call.title,
        first.input_sizes,
        expected,
        confidence=confidence,
        frames=first.frames,
    )
