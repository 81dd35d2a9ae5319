"""Makes Flight Recorder dumps of hangs: runs a made-up job until it stands still, and writes what each rank recorded.

A job is one program per rank. A rank issues its operations in order, some steps ahead of what its device has finished;
a device runs them in order, and an operation finishes once every rank that takes part has come to it. Faults stop a
rank's process, break or freeze its device, or kill it before it can write a dump.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyzers.model import Source
from analyzers.parsers.flight_recorder import read_dump
from analyzers.parsers.flight_recorder_model import Dump

Document = dict[str, Any]


@dataclass(frozen=True)
class Op:
    """One operation of one rank; for "send" and "recv" `peer` is the place of the other end in the group."""

    group: str
    name: str = "all_reduce"
    size: tuple[int, ...] = (64,)
    dtype: str = "Float"
    output: tuple[int, ...] | None = None
    peer: int | None = None

    @property
    def is_p2p(self) -> bool:
        return self.peer is not None


@dataclass(frozen=True)
class Faults:
    """By rank, the operation (counted from 0) at which it happens.

    stopped: the process never issues it (a held GIL, an endless loop).
    broken: the device dies. What it finished from here on is never seen; peers still get its part in two operations.
    frozen: the device never begins it; the process goes on.
    killed: as stopped, and there is no dump.
    """

    stopped: Mapping[int, int] = field(default_factory=dict)
    broken: Mapping[int, int] = field(default_factory=dict)
    frozen: Mapping[int, int] = field(default_factory=dict)
    killed: Mapping[int, int] = field(default_factory=dict)


NO_FAULTS = Faults()


@dataclass(frozen=True)
class Job:
    groups: Mapping[str, tuple[int, ...]]
    programs: Mapping[int, Sequence[Op]]
    ahead: int = 6  # operations that a process issues before its device has finished the first


def run(job: Job, faults: Faults = NO_FAULTS, *, only_open: bool = True, ring: int = 2000) -> dict[int, Document]:
    """Run until nobody gets any further; return the dumps of the ranks that wrote one."""
    issued = dict.fromkeys(job.programs, 0)
    finished = dict.fromkeys(job.programs, 0)
    last: list[dict[int, int]] = []
    while not last or last != [issued, finished]:
        last = [dict(issued), dict(finished)]
        for rank, program in job.programs.items():
            limit = min(len(program), finished[rank] + job.ahead)
            for stops in (faults.stopped, faults.killed):
                limit = min(limit, stops.get(rank, limit))
            issued[rank] = max(issued[rank], limit)
        for rank in job.programs:
            _finish_one(job, rank, issued, finished, faults)
    came_to = {
        rank: (issued[rank], _seen(rank, finished, faults)) for rank in job.programs if rank not in faults.killed
    }
    return written(job, came_to, only_open=only_open, ring=ring)


def written(
    job: Job, came_to: Mapping[int, tuple[int, int]], *, only_open: bool = True, ring: int = 2000
) -> dict[int, Document]:
    """Return the dumps of ranks that have issued and finished so many operations."""
    return {rank: _document(job, rank, at, only_open=only_open, ring=ring) for rank, at in came_to.items()}


def _finish_one(job: Job, rank: int, issued: dict[int, int], finished: dict[int, int], faults: Faults) -> None:
    """Finish the operation that a rank's device stands at, on all its ranks, if all of them stand at it."""
    if finished[rank] == issued[rank]:
        return
    op = job.programs[rank][finished[rank]]
    members = job.groups[op.group]
    taking_part = members if op.peer is None else (rank, members[op.peer])
    for member in taking_part:
        at = finished[member]
        if at == issued[member] or at >= faults.frozen.get(member, at + 1) or at >= faults.broken.get(member, at) + 2:
            return
        theirs = job.programs[member][at]
        same_pair = theirs.peer is None if op.peer is None else theirs.is_p2p
        if theirs.group != op.group or not same_pair or (member != rank and not _fits(op, theirs, rank, members)):
            return
    for member in taking_part:
        finished[member] += 1


def _fits(op: Op, theirs: Op, rank: int, members: tuple[int, ...]) -> bool:
    if op.peer is not None:
        return theirs.peer is not None and members[theirs.peer] == rank and theirs.name != op.name
    if op.name == theirs.name == "all_to_all":
        return True  # it splits unevenly
    return (op.name, op.size, op.dtype, op.output) == (theirs.name, theirs.size, theirs.dtype, theirs.output)


def _seen(rank: int, finished: Mapping[int, int], faults: Faults) -> int:
    return min(finished[rank], faults.broken.get(rank, finished[rank]))


def _document(job: Job, rank: int, came_to: tuple[int, int], *, only_open: bool, ring: int) -> Document:
    issued, finished = came_to
    mine = [name for name, members in job.groups.items() if rank in members]
    numbers = {name: number for number, name in enumerate(mine)}
    counts = {name: [0, 0] for name in mine}  # collectives, sends and receives
    status = {name: [0, 0] for name in mine}
    entries = []
    for place, op in enumerate(job.programs[rank][:issued]):
        counts[op.group][op.is_p2p] += 1
        number = counts[op.group][op.is_p2p]
        status[op.group][0] = number
        if place < finished:
            status[op.group][1] = number
        state = "completed" if place < finished else "scheduled"
        own = job.groups[op.group].index(rank)
        entries.append({**_entry(op, counts[op.group], own, state), "record_id": place, "pg_id": numbers[op.group]})
    if only_open:
        entries = [entry for entry in entries if entry["state"] != "completed"]
    return {
        "version": "2.10",
        "nccl_version": "2.27.3",
        "pg_config": {
            name: {"name": name, "desc": f"GROUP_{name}", "ranks": str(list(job.groups[name]))} for name in mine
        },
        "pg_status": {
            str(numbers[name]): {
                "last_enqueued_collective": at[0],
                "last_started_collective": -1,
                "last_completed_collective": at[1],
            }
            for name, at in status.items()
        },
        "entries": entries[-ring:],
    }


def _entry(op: Op, counts: Sequence[int], own: int, state: str) -> Document:
    arrow = {"send": f" {own}->{op.peer}", "recv": f" {own}<-{op.peer}"}.get(op.name, "")
    return {
        "process_group": (op.group, f"GROUP_{op.group}"),
        "collective_seq_id": counts[0],
        "p2p_seq_id": counts[1],
        "op_id": sum(counts),
        "profiling_name": f"nccl:{op.name}{arrow}",
        "time_created_ns": 1_700_000_000_000_000_000 + sum(counts),
        "input_sizes": [list(op.size)],
        "input_dtypes": [op.dtype],
        "output_sizes": [list(op.output if op.output is not None else op.size)],
        "output_dtypes": [op.dtype],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1_700_000_000_000_000_000 if state == "completed" else None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": op.is_p2p,
        "thread_id": "1",
        "thread_name": "python3",
    }


def pickled(document: Document) -> bytes:
    return pickle.dumps(document, protocol=2)


def as_json(document: Document) -> bytes:
    """The JSON form: counters are text, and no entries means no key."""
    status = {
        number: {key: str(value) for key, value in counts.items()} for number, counts in document["pg_status"].items()
    }
    kept = {key: value for key, value in document.items() if key != "entries" or value}
    return json.dumps({**kept, "pg_status": status}, sort_keys=True).encode()


def source_of(data: bytes, name: str = "_dump_0") -> Source:
    return Source(name, lambda: iter([data[:7], data[7:]]), len(data))


def read_all(documents: Mapping[int, Document]) -> list[Dump]:
    dumps = [read_dump(source_of(pickled(document), f"out/_dump_{rank}")) for rank, document in documents.items()]
    read = [dump for dump in dumps if isinstance(dump, Dump)]
    assert len(read) == len(dumps), dumps
    return read


def pipeline_job(*, stages: int = 2, tensor: int = 2, data: int = 2, steps: int = 3) -> Job:
    """A Megatron-like job: tensor groups within stages, sends between stages, one gradient reduction per step."""
    ranks = stages * tensor * data

    def rank_at(stage: int, replica: int, shard: int) -> int:
        return (stage * data + replica) * tensor + shard

    groups: dict[str, tuple[int, ...]] = {"0": tuple(range(ranks))}
    places = [(s, d, t) for s in range(stages) for d in range(data) for t in range(tensor)]
    names: dict[tuple[str, int], str] = {}
    for kind, members in (
        ("tp", lambda s, d, t: tuple(rank_at(s, d, shard) for shard in range(tensor))),
        ("dp", lambda s, d, t: tuple(rank_at(s, replica, t) for replica in range(data))),
        ("pp", lambda s, d, t: tuple(rank_at(stage, d, t) for stage in range(stages))),
    ):
        for place in places:
            found = members(*place)
            name = next((name for name, known in groups.items() if known == found and int(name) >= 1), str(len(groups)))
            groups.setdefault(name, found)
            names[kind, rank_at(*place)] = name
    programs = {rank_at(*place): _program(place, stages, steps, names, rank_at(*place)) for place in places}
    return Job(groups, programs)


def _program(
    place: tuple[int, int, int], stages: int, steps: int, names: Mapping[tuple[str, int], str], rank: int
) -> list[Op]:
    stage = place[0]
    pipe, tensor, replicas = names["pp", rank], names["tp", rank], names["dp", rank]
    program: list[Op] = [Op("0", "all_reduce", (1,))]
    for _ in range(steps):
        for forward in (True, False):
            before, after = (stage - 1, stage + 1) if forward else (stage + 1, stage - 1)
            if 0 <= before < stages:
                program.append(Op(pipe, "recv", (32, 8), peer=before))
            program += [Op(tensor, "_all_gather_base", (16, 8), output=(32, 8)), Op(tensor, "_reduce_scatter_base")]
            if 0 <= after < stages:
                program.append(Op(pipe, "send", (32, 8), peer=after))
        program += [Op(replicas, "all_reduce", (1000,)), Op("0", "all_reduce", (1,))]
    return program


def swapped(program: Iterable[Op], place: int, op: Op) -> list[Op]:
    changed = list(program)
    changed[place] = op
    return changed
