"""Who waits for whom: for every unfinished operation, the ranks that have not come to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from analyzers.model import Confidence
from analyzers.parsers.flight_recorder_model import Culprit, Frame, Group, Progress, Reason, Sizes
from analyzers.parsers.flight_recorder_progress import (
    Board,
    GroupKey,
    Standing,
    Transfer,
    has_been_met,
    key_of,
)
from analyzers.records import dataclass

Edges = dict[int, set[int]]
End = tuple[int, int, bool, GroupKey]  # rank, peer, whether it sends, group


@dataclass(frozen=True)
class Wait:
    """`rank` stands in one operation; `missing` have not come to it, `absent` left no dump, `arrived` stand in it too.

    `sure` is false where the counters of a missing rank are unknown, so that only its silence speaks.
    """

    rank: int
    group: Group
    seq: int
    operation: str
    sizes: Sizes = ()
    missing: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()
    arrived: frozenset[int] = frozenset()
    is_transfer: bool = False
    sends: bool = False
    sure: bool = True
    record: int | None = None
    frames: tuple[Frame, ...] = ()

    @property
    def awaited(self) -> frozenset[int]:
        """Whom it waits for; a rank without a dump is asked only when no other explains the wait."""
        return self.missing or self.absent


def accuse_in(wait: Wait, reason: Reason, confidence: Confidence) -> Culprit:
    """Accuse the waiting rank by the operation that it stands in."""
    return Culprit(
        wait.rank, reason, wait.group, wait.seq, wait.operation, wait.sizes, confidence=confidence, frames=wait.frames
    )


def find_waits(board: Board) -> tuple[Wait, ...]:
    """Return one wait per rank and group that it stands in, and one per pair of ranks with an open send or receive."""
    found: list[Wait] = []
    for key, standings in board.standings.items():
        for rank, standing in standings.items():
            if standing.head is not None:
                found.append(_collective(board, key, rank, standing.head))
    ends = Counter(
        (each.rank, each.peer, each.sends, key_of(each.group)) for some in board.transfers.values() for each in some
    )
    for transfers in board.transfers.values():
        found += _transfers(board, transfers, ends)
    return tuple(found)


def _collective(board: Board, key: GroupKey, rank: int, seq: int) -> Wait:
    group, standings = board.groups[key], board.standings[key]
    peers = frozenset(group.ranks) - {rank}
    progress = {peer: standings[peer].progress if peer in standings else Progress(0, 0) for peer in peers & board.ranks}
    missing = frozenset(peer for peer, at in progress.items() if at.enqueued is None or at.enqueued < seq)
    call = standings[rank].calls.get(seq)
    first = call.operations[0] if call else None
    return Wait(
        rank,
        group,
        seq,
        call.title if call else "collective",
        first.input_sizes if first else (),
        missing,
        peers - board.ranks,
        frozenset(progress) - missing,
        sure=all(progress[peer].enqueued is not None for peer in missing),
        record=call.record if call else None,
        frames=first.frames if first else (),
    )


def _transfers(board: Board, transfers: Iterable[Transfer], ends: Mapping[End, int]) -> Iterable[Wait]:
    """A send meets the receive of the same place in line: more open sends than receives mean missing receives.

    Of each line two are told: the first, which its stream stands at, and the first whose other end is missing.
    """
    seen: Counter[End] = Counter()
    told: set[tuple[End, bool]] = set()
    for transfer in transfers:
        line = transfer.rank, transfer.peer, transfer.sends, key_of(transfer.group)
        seen[line] += 1
        met = has_been_met(board, transfer)
        unmet = seen[line] > ends[line[1], line[0], not line[2], line[3]] if met is None else not met
        if not told & {(line, True), (line, unmet)}:
            told.add((line, unmet))
            yield _transfer(board, transfer, unmet=unmet)


def _transfer(board: Board, transfer: Transfer, *, unmet: bool) -> Wait:
    peer = frozenset({transfer.peer})
    has_dump = transfer.peer in board.ranks
    return Wait(
        transfer.rank,
        transfer.group,
        transfer.seq,
        transfer.entry.operation,
        transfer.entry.input_sizes or transfer.entry.output_sizes,
        missing=peer if unmet and has_dump else frozenset(),
        absent=frozenset() if has_dump else peer,
        arrived=peer if has_dump and not unmet else frozenset(),
        is_transfer=True,
        sends=transfer.sends,
        record=transfer.entry.record,
        frames=transfer.entry.frames,
    )


def edges_of(waits: Iterable[Wait]) -> Edges:
    """Return for each waiting rank the ranks it waits for."""
    edges: Edges = {}
    for wait in waits:
        edges.setdefault(wait.rank, set()).update(wait.awaited)
    return edges


def edges_of_the_absent(waits: Sequence[Wait], accused: Iterable[int]) -> Edges:
    """Return whom a rank without a dump may itself have waited for.

    In a collective that is whoever else is missing or accused there; in a transfer the rank at the other end, if that
    one is held up by others.
    """
    edges: Edges = {}
    blamed = frozenset(accused)
    held_up = blamed | {wait.rank for wait in waits if wait.missing}
    for wait in waits:
        explained = held_up & {wait.rank} if wait.is_transfer else wait.missing | (blamed & frozenset(wait.group.ranks))
        for rank in wait.absent:
            edges.setdefault(rank, set()).update(explained - {rank})
    return edges


def edges_of_the_blocked(board: Board, waits: Iterable[Wait], accused: Iterable[int]) -> Edges:
    """Return for ranks whose operation everybody has entered, whose other work keeps it from running.

    A peer issued the operation, but its device stands at something that it issued before, or at a fault of its own.
    """
    edges: Edges = {}
    blamed = frozenset(accused)
    at: dict[tuple[object, ...], int | None] = {}
    for wait in find_waits(board):
        at.setdefault(_place(wait.rank, wait, at_the_other_end=False), wait.record)
    for wait in waits:
        for peer in () if wait.awaited else wait.arrived:
            record = at.get(_place(peer, wait, at_the_other_end=True))
            if peer in blamed or (record is not None and board.first_open.get(peer, record) < record):
                edges.setdefault(wait.rank, set()).add(peer)
    return edges


def _place(rank: int, wait: Wait, *, at_the_other_end: bool) -> tuple[object, ...]:
    """Where `rank` stands in the operation of `wait`: a collective by number, a transfer by direction and ends."""
    if not wait.is_transfer:
        return rank, key_of(wait.group), wait.seq
    ends = (wait.rank, *(wait.missing | wait.absent | wait.arrived))
    sends = wait.sends is not at_the_other_end
    return rank, key_of(wait.group), sends, frozenset(ends)


def sinks(edges: Mapping[int, set[int]]) -> list[frozenset[int]]:
    """Return the sets of ranks from which waiting leads nowhere else: single ranks, or rings.

    Source: Kosaraju's algorithm for strongly connected components.
    """
    reverse: Edges = {}
    for rank, targets in edges.items():
        for target in targets:
            reverse.setdefault(target, set()).add(rank)
    placed: set[int] = set()
    ordered = reversed(_postorder(edges, {*edges, *reverse}, set()))
    rings = [frozenset(_postorder(reverse, (root,), placed)) for root in ordered if root not in placed]
    return [ring for ring in rings if all(edges.get(rank, set()) <= ring for rank in ring)]


def _postorder(edges: Mapping[int, set[int]], roots: Iterable[int], seen: set[int]) -> list[int]:
    """Walk depth first from the roots past what was seen (and add to it); on a stack, as chains of waits are long."""
    order = []
    for root in sorted(roots):
        stack = [(root, False)]
        while stack:
            rank, is_left = stack.pop()
            if is_left:
                order.append(rank)
            elif rank not in seen:
                seen.add(rank)
                stack.append((rank, True))
                stack.extend((target, False) for target in sorted(edges.get(rank, ())))
    return order


def heads(standings: Mapping[int, Standing]) -> dict[int, int]:
    """Return the collective that each waiting rank of one group stands at."""
    return {rank: standing.head for rank, standing in standings.items() if standing.head is not None}
