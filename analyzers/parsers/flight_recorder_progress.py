"""Dumps of all ranks laid side by side: how far each rank came in each group, and which sends and receives are open.

A rank's dump is partial. Only unfinished operations may be in it (TORCH_INCLUDE_ONLY_ACTIVE, Megatron-LM's default),
the ring may have dropped the oldest, and the counters (`pg_status`) are keyed by a number that every process counts for
itself.

Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: workEnqueue and the watchdog store a work's own number in the
group's one status, for collectives and sends alike: in a group that has both, the counters of two ranks do not compare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from analyzers.parsers.flight_recorder_model import Dump, Entry, Group, Progress
from analyzers.records import dataclass, field, replace

GroupKey = tuple[str, tuple[int, ...]]
COALESCED = "coalesced"


@dataclass(frozen=True)
class Call:
    """One kernel launch of one rank: its operations in issued order (several, if they were coalesced)."""

    rank: int
    group: Group
    seq: int
    operations: tuple[Entry, ...]
    done: bool

    @property
    def record(self) -> int:
        return self.operations[0].record

    @property
    def title(self) -> str:
        return " + ".join(dict.fromkeys(entry.operation for entry in self.operations))


@dataclass(frozen=True)
class Transfer:
    """One unfinished send or receive of `rank`; `peer` is a global rank."""

    rank: int
    peer: int
    sends: bool
    group: Group
    seq: int
    entry: Entry


@dataclass(frozen=True)
class Standing:
    """How far one rank came with the collectives of one group; `calls` are the recorded ones by sequence number.

    `transfers` is the number of its last send or receive there; it compares only in a group of two.
    """

    progress: Progress
    calls: Mapping[int, Call] = field(default_factory=dict)
    transfers: int | None = None

    @property
    def head(self) -> int | None:
        """The first collective that was issued and is not finished; it is the one that its stream stands at."""
        issued, finished = self.progress.enqueued, self.progress.completed
        if issued is None or finished is None or issued <= finished:
            return None
        return finished + 1


@dataclass(frozen=True)
class Board:
    """All dumps side by side. `standings[group][rank]` exists for every member that left a dump."""

    ranks: frozenset[int]
    groups: Mapping[GroupKey, Group]
    standings: Mapping[GroupKey, Mapping[int, Standing]]
    transfers: Mapping[int, tuple[Transfer, ...]]
    first_open: Mapping[int, int]  # per rank, the record number of its first unfinished operation
    open_ends: frozenset[tuple[int, GroupKey, int, bool]]  # rank, group, number, whether it sends: all transfers


def lay_out(dumps: Sequence[Dump]) -> Board:
    """Put the dumps side by side; one dump per rank."""
    groups = _groups(dumps)
    calls = {dump.rank: _calls(dump, groups) for dump in dumps}
    mixed = {key_of(call.group) for each in calls.values() for call in each if _is_mixed(call)}
    numbers = _numbers_of_groups(dumps)
    standings: dict[GroupKey, dict[int, Standing]] = defaultdict(dict)
    for dump in dumps:
        names = _names_of_status(dump, numbers)
        mine: dict[GroupKey, list[Call]] = {key_of(group): [] for group in dump.groups.values()}
        for call in calls[dump.rank]:
            mine.setdefault(key_of(call.group), []).append(call)
        for key, each in mine.items():
            status = _status(dump, names, groups[key])
            standings[key][dump.rank] = _mixed_standing(each, status) if key in mixed else _standing(each, status)
    transfers = {rank: tuple(_transfers(each)) for rank, each in calls.items()}
    opened = {rank: [call.record for call in each if not call.done] for rank, each in calls.items()}
    first_open = {rank: min(records) for rank, records in opened.items() if records}
    ends = frozenset(
        (each.rank, key_of(each.group), each.seq, each.sends) for some in transfers.values() for each in some
    )
    return Board(frozenset(calls), groups, standings, transfers, first_open, ends)


def key_of(group: Group) -> GroupKey:
    """A name alone is no key: ranks that build groups on their own may give one name to different members."""
    return group.name, group.ranks


def _groups(dumps: Sequence[Dump]) -> dict[GroupKey, Group]:
    found = {key_of(group): group for dump in dumps for group in dump.groups.values()}
    loose: dict[str, set[int]] = defaultdict(set)
    for dump in dumps:
        for entry in dump.entries:
            if entry.group not in dump.groups:
                loose[entry.group].add(dump.rank)
    for name, ranks in loose.items():  # no configuration was recorded: its members are who used it
        group = Group(name, "", tuple(sorted(ranks)))
        found[key_of(group)] = group
    return found


def _calls(dump: Dump, groups: Mapping[GroupKey, Group]) -> list[Call]:
    by_launch: dict[tuple[str, bool, int], list[Entry]] = defaultdict(list)
    for entry in dump.entries:
        number = entry.p2p_seq if entry.is_p2p else entry.seq
        by_launch[entry.group, entry.is_p2p, number].append(entry)
    loose = {group.name: group for group in groups.values()}
    coalescing = {entry.group for entry in dump.entries if entry.operation == COALESCED}
    return [
        Call(
            dump.rank,
            dump.groups.get(name) or loose[name],
            number,
            tuple(entries),
            _is_done(entries, coalescing=name in coalescing),
        )
        for (name, _, number), entries in by_launch.items()
    ]


def _is_done(entries: Sequence[Entry], *, coalescing: bool) -> bool:
    """Tell whether a launch has finished.

    Operations inside a coalesced launch have no events of their own and stay "scheduled" for ever: the closing entry
    tells.
    Where only unfinished launches were written and the closing entry is missing, it had finished.
    """
    closing = [entry for entry in entries if entry.operation.lower().endswith(COALESCED)]
    if closing:
        return closing[-1].state == "completed"
    if len(entries) > 1 or (coalescing and entries[0].op_id != entries[0].seq + entries[0].p2p_seq):
        return True
    return entries[0].state == "completed"


def _is_mixed(call: Call) -> bool:
    return any(entry.is_p2p or entry.p2p_seq > 0 for entry in call.operations)


def _standing(calls: Sequence[Call], status: Progress | None) -> Standing:
    # A send's entry carries the number of collectives so far, so it counts for what was issued.
    known = [entry.seq for call in calls for entry in call.operations]
    collectives = {call.seq: call for call in calls if not call.operations[0].is_p2p}
    opened = [call.seq for call in collectives.values() if not call.done]
    finished = [call.seq for call in collectives.values() if call.done]
    if status is not None:
        known.append(status.enqueued or 0)
        finished.append(status.completed or 0)
    if not known:
        return Standing(Progress())
    issued = max(known)
    if opened:
        finished.append(min(opened) - 1)
    elif not finished:
        finished.append(issued)  # nothing open among what was written
    return Standing(Progress(issued, max(finished)), collectives)


def _mixed_standing(calls: Sequence[Call], status: Progress | None) -> Standing:
    """Where the counter may be either kind's: one above every collective on record is of sends and receives."""
    entries = [entry for call in calls for entry in call.operations]
    numbers = [entry.p2p_seq for entry in entries]
    if status is not None and (status.enqueued or 0) > max((entry.seq for entry in entries), default=0):
        numbers.append(status.enqueued or 0)
    return replace(_standing(calls, None), transfers=max(numbers, default=None))


def _transfers(calls: Iterable[Call]) -> Iterable[Transfer]:
    for call in sorted(calls, key=lambda call: call.record):
        for entry in call.operations:
            peer = _peer(call, entry)
            if entry.is_p2p and not call.done and peer is not None:
                yield Transfer(call.rank, peer, entry.operation.startswith("send"), call.group, call.seq, entry)


def _peer(call: Call, entry: Entry) -> int | None:
    """Return the global rank at the other end of "send 0->3" or "recv 3<-0", whose numbers are places in the group."""
    kind, _, ends = entry.operation.partition(" ")
    place = {"send": ends.partition("->")[2], "recv": ends.partition("<-")[2]}.get(kind, "")
    if not place.isdecimal() or int(place) >= len(call.group.ranks):
        return None
    return call.group.ranks[int(place)]


def _status(dump: Dump, names: Mapping[int, str], group: Group) -> Progress | None:
    for pg_id, name in names.items():
        if name == group.name and pg_id in dump.status:
            return dump.status[pg_id]
    if dump.status and set(dump.status) <= set(names):
        return Progress(0, 0)  # every counter belongs to another group: nothing was ever issued in this one
    return None


def _numbers_of_groups(dumps: Sequence[Dump]) -> dict[str, set[int]]:
    numbers: dict[str, set[int]] = defaultdict(set)
    for dump in dumps:
        for entry in dump.entries:
            numbers[entry.group].add(entry.pg_id)
    return numbers


def _names_of_status(dump: Dump, numbers: Mapping[str, set[int]]) -> dict[int, str]:
    """Find the group behind each counter of a dump: by its own entries, else its peers', else the order of creation."""
    own = {entry.pg_id: entry.group for entry in dump.entries}
    found = dict(own)
    for name in dump.groups:
        if len(ids := numbers.get(name, set())) == 1:  # all peers that used it count it alike
            found.setdefault(next(iter(ids)), name)
    if len(dump.status) != len(dump.groups) or not all(name.isdecimal() for name in dump.groups):
        return found
    ordered = dict(zip(sorted(dump.status), sorted(dump.groups, key=int), strict=True))
    return ordered if (own or found).items() <= ordered.items() else found


def has_been_met(board: Board, transfer: Transfer) -> bool | None:
    """Tell whether the other end of a transfer was issued, by counting; None where the numbers do not compare.

    Between two ranks every send is a receive, so both count alike, unless they issue in another order.
    """
    key = key_of(transfer.group)
    if len(transfer.group.ranks) != 2 or (transfer.peer, key, transfer.seq, transfer.sends) in board.open_ends:
        return None
    theirs = board.standings[key].get(transfer.peer)
    return None if theirs is None or theirs.transfers is None else theirs.transfers >= transfer.seq
