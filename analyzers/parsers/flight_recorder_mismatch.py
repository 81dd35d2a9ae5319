"""Ranks that met at one sequence number of a group with different operations, sizes or types.

Source: NCCL asks all ranks of a communicator for the same sequence of operations with the same count and type; which
counts may differ by rank follows from torch.distributed's contract of each operation (all_to_all and the *_v forms
split unevenly; only the root of a gather has outputs, only the root of a scatter has inputs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from analyzers.model import Confidence
from analyzers.parsers.flight_recorder_document import numel
from analyzers.parsers.flight_recorder_model import Culprit, Entry, Reason
from analyzers.parsers.flight_recorder_progress import Board, Call, Standing, Transfer

_UNEVEN = ("all_to_all", "alltoall", "all_gather_v", "reduce_scatter_v", "coalesced")
_ONE_SIDED_INPUT = (*_UNEVEN, "scatter")
_ONE_SIDED_OUTPUT = (*_UNEVEN, "gather", "reduce", "_reduce_oop")
#: From the coarse to the fine: the first that differs names the mismatch.
_ASPECTS = (Reason.OPERATION, Reason.INPUT_SIZE, Reason.OUTPUT_SIZE, Reason.DTYPE)


def find_mismatches(board: Board) -> tuple[Culprit, ...]:
    """Accuse who differs from the majority of its group at the first collective that differs; if there is none, all."""
    found: list[Culprit] = []
    for standings in board.standings.values():
        found += _first_mismatch(standings)
    found += _transfer_mismatches(board.transfers)
    return tuple(found)


def _first_mismatch(standings: Mapping[int, Standing]) -> list[Culprit]:
    heads = [standing.head for standing in standings.values() if standing.head is not None]
    numbers = sorted({number for standing in standings.values() for number in standing.calls if heads})
    for number in numbers:
        calls = [standing.calls[number] for standing in standings.values() if number in standing.calls]
        if len(calls) > 1 and not all(call.done for call in calls) and (accused := _differing(calls)):
            return accused
    return []


def _differing(calls: Sequence[Call]) -> list[Culprit]:
    for aspect in _ASPECTS:
        values = {call.rank: _aspect(call, aspect) for call in calls}
        votes = Counter(value for value in values.values() if value is not None)
        if len(votes) < 2:
            continue
        (usual, most), *_ = votes.most_common()
        majority = 2 * most > votes.total()
        confidence = Confidence.HIGH if majority else Confidence.LOW
        return [
            _accuse(call, aspect, usual if majority else _others(votes, values[call.rank]), confidence)
            for call in calls
            if values[call.rank] is not None and not (majority and values[call.rank] == usual)
        ]
    return []


def _others(votes: Counter[str], mine: str | None) -> str:
    return " or ".join(sorted(value for value in votes if value != mine))


def _aspect(call: Call, aspect: Reason) -> str | None:
    """Return what has to be equal on all ranks, as text; None where ranks may differ."""
    named = [entry.operation.partition(" ")[0] for entry in call.operations]
    if aspect is Reason.OPERATION:
        return " + ".join(named)
    parts = [_part(entry, name, aspect) for entry, name in zip(call.operations, named, strict=True)]
    return " + ".join(part for part in parts if part is not None) if any(part is not None for part in parts) else None


def _part(entry: Entry, name: str, aspect: Reason) -> str | None:
    if aspect is Reason.INPUT_SIZE:
        return None if name.startswith(_ONE_SIDED_INPUT) else f"{numel(entry.input_sizes)} elements"
    if aspect is Reason.OUTPUT_SIZE:
        return None if name.startswith(_ONE_SIDED_OUTPUT) else f"{numel(entry.output_sizes)} elements"
    types = entry.output_dtypes if name.startswith("scatter") else entry.input_dtypes
    return ", ".join(sorted(set(types))) or None


def _accuse(call: Call, aspect: Reason, expected: str | None, confidence: Confidence) -> Culprit:
    entry = call.operations[0]
    sizes = entry.output_sizes if aspect is Reason.OUTPUT_SIZE else entry.input_sizes
    return Culprit(
        call.rank, aspect, call.group, call.seq, call.title, sizes, expected, confidence=confidence, frames=entry.frames
    )


def _transfer_mismatches(transfers: Mapping[int, Sequence[Transfer]]) -> Iterable[Culprit]:
    """Compare the oldest open send of each pair with the oldest open receive at its other end."""
    ends = {}
    for each in transfers.values():
        for transfer in reversed(each):
            ends[transfer.rank, transfer.peer, transfer.sends, transfer.group] = transfer
    for (rank, peer, sends, group), sent in ends.items():
        received = ends.get((peer, rank, False, group))
        if not sends or received is None:
            continue
        counts = numel(sent.entry.input_sizes), numel(received.entry.output_sizes)
        if counts[0] != counts[1]:
            yield _accuse_end(sent, Reason.INPUT_SIZE, f"{counts[1]} elements")
            yield _accuse_end(received, Reason.OUTPUT_SIZE, f"{counts[0]} elements")


def _accuse_end(end: Transfer, reason: Reason, expected: str) -> Culprit:
    sizes = end.entry.input_sizes if end.sends else end.entry.output_sizes
    return Culprit(
        end.rank,
        reason,
        end.group,
        end.seq,
        end.entry.operation,
        sizes,
        expected,
        confidence=Confidence.LOW,
        frames=end.entry.frames,
    )
