"""Jobs of several nodes whose folders number the ranks of each node from 0: which global ranks they hold.

The lines know it where the launcher or torch's hook puts the rank before them. Without that, the order of the folders
is all there is, and torchrun may have numbered the nodes otherwise. The ranks of a node follow each other, in the order
of the nodes' group ranks. Source: torch 2.13, distributed/elastic/agent/server/api.py, `_assign_worker_ranks`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from analyzers.model import Confidence
from analyzers.parsers.readings import LogReading
from analyzers.patterns import pattern
from analyzers.reading.layout import Kind, RunKey
from analyzers.records import dataclass, replace

_NUMBERS = pattern(r"(\d+)")


@dataclass(frozen=True)
class Shifts:
    """What to add to the rank in a path to get the global one, per folder; how sure that is."""

    by_key: dict[RunKey, int]
    confidence: Confidence = Confidence.HIGH

    def of(self, key: RunKey) -> int:
        """Return the shift of a folder."""
        return self.by_key.get(key, 0)


def hosts_as_nodes(readings: Sequence[LogReading]) -> list[LogReading]:
    """Take folders for nodes, not tests, where the ranks in them only together make up the world that one tells of."""
    folders: dict[tuple[str, int, int], dict[str, set[int]]] = {}
    worlds: dict[tuple[str, int, int], set[int]] = {}
    for reading in _ranked(readings):
        run = reading.place.run
        if run.node or not run.test:
            continue
        group = run.test.rpartition("/")[0], run.repeat, run.attempt
        folders.setdefault(group, {}).setdefault(run.test, set()).add(reading.place.local_rank or 0)
        worlds.setdefault(group, set()).update(stream.world for stream in reading.streams if stream.world)
    hosts = {
        test
        for group, tests in folders.items()
        if len(tests) > 1 and worlds[group] == {sum(len(ranks) for ranks in tests.values())}
        for test in tests
    }
    return [_on_node(reading) if reading.place.run.test in hosts else reading for reading in readings]


def _on_node(reading: LogReading) -> LogReading:
    run = reading.place.run
    test, _, host = run.test.rpartition("/")
    return replace(reading, place=replace(reading.place, run=replace(run, test=test, node=host)))


def shifts_of(readings: Iterable[LogReading]) -> Shifts:
    """Find the shift of each folder of one start: by the prefix in the lines, else by the order of the nodes."""
    told: dict[RunKey, Counter[int]] = {}
    local: dict[RunKey, set[int]] = {}
    for reading in _ranked(readings):
        key, rank = reading.place.run, reading.place.local_rank or 0
        local.setdefault(key, set()).add(rank)
        if reading.prefix_rank is not None:
            told.setdefault(key, Counter())[reading.prefix_rank - rank] += 1
    known = {key: max(counter.items(), key=lambda item: (item[1], -item[0]))[0] for key, counter in told.items()}
    untold = [key for key in local if key.node and key not in known]
    every = [rank for ranks in local.values() for rank in ranks]
    if not untold or len({key.node for key in local}) < 2 or len(set(every)) == len(every):
        return Shifts(known)
    return _by_order(known, local)


def _by_order(known: dict[RunKey, int], local: dict[RunKey, set[int]]) -> Shifts:
    size = max(max(ranks) for ranks in local.values()) + 1
    names = sorted({key.node for key in local}, key=_natural)
    numbers = [_NUMBERS.findall(name) for name in names]
    numbered = [int(found[-1]) for found in numbers if found] == list(range(len(names)))
    order = {name: place for place, name in enumerate(names)}
    shifts = {key: known.get(key, order[key.node] * size) for key in local}
    return Shifts(shifts, Confidence.MEDIUM if numbered else Confidence.LOW)


def _natural(name: str) -> list[tuple[int, str]]:
    """Order names as people number them: node-9 before node-10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _NUMBERS.split(name)]


def _ranked(readings: Iterable[LogReading]) -> Iterable[LogReading]:
    return (one for one in readings if one.place.kind is Kind.RANK and one.place.local_rank is not None)
