"""Which folders make up one start of the workers: the launcher of each node makes its own, with a random name.

A launcher that starts again makes another folder, and so does the script's second run of pytest; then each node has
several. Which of them ran together is told by the global ranks in their lines, by what they ran, and by when.
Source: torch 2.13, distributed/elastic/multiprocessing (log directories of an agent).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from analyzers.parsers.readings import LogReading
from analyzers.parsers.tracebacks import Trace
from analyzers.reading.layout import Kind, RunKey
from analyzers.records import dataclass, field

#: torchrun's frames: torch/distributed/launcher/api.py.
_LAUNCHER = "torch/distributed/launcher/"


@dataclass
class _Folder:
    """What is known of one folder: the ranks on its node, how far these are from the global ones, what ran, when."""

    key: RunKey
    local: set[int] = field(default_factory=set)
    shifts: Counter[int] = field(default_factory=Counter)
    tests: set[str] = field(default_factory=set)
    clock: float | None = None

    @property
    def ranks(self) -> set[int]:
        """The global ranks, none where no line names one."""
        shift = max(self.shifts.items(), key=lambda item: (item[1], -item[0]))[0] if self.shifts else None
        return set() if shift is None else {rank + shift for rank in self.local}


class _Start:
    """The folders found to have run together, and what the next one is asked about them."""

    def __init__(self, first: _Folder) -> None:
        self.folders = [first]
        self.nodes = {first.key.node}
        self.highest = max(first.ranks, default=None)

    def add(self, folder: _Folder) -> None:
        self.folders.append(folder)
        self.nodes.add(folder.key.node)
        self.highest = max([*folder.ranks, *([] if self.highest is None else [self.highest])], default=None)

    def is_before(self, node: str, lowest: int | None, *, even: bool) -> bool:
        """Whether a folder may be the next part.

        Args:
            lowest: the first of its global ranks, if they are known.
            even: each node made as many folders as the others.
        """
        if node and node in self.nodes:
            return False
        if self.highest is not None and lowest is not None:
            return lowest > self.highest
        return even  # no line names a rank: that each start has one of each is all that can be known


def one_start_each(readings: Sequence[LogReading]) -> list[list[RunKey]]:
    """Sort the folders into starts, the parts of one start in the order of their ranks."""
    folders = _folders(readings)
    if not folders:
        told = (r for r in readings if _tells_of_a_start(r))
        return [[key] for key in sorted({r.place.run for r in told})]
    alike: dict[tuple[str, int, int], list[_Folder]] = {}
    for folder in folders:
        alike.setdefault((folder.key.test, folder.key.repeat, folder.key.attempt), []).append(folder)
    return [[folder.key for folder in start.folders] for place in sorted(alike) for start in _starts_of(alike[place])]


def _starts_of(folders: Sequence[_Folder]) -> list[_Start]:
    made = Counter(folder.key.node for folder in folders)
    even = "" not in made and len(set(made.values())) == 1
    starts: list[_Start] = []
    for folder in sorted(folders, key=lambda one: (min(one.ranks, default=0), one.key.node, one.key)):
        node, lowest = folder.key.node, min(folder.ranks, default=None)
        # The first node's are as many as there are starts: not each is compared with each.
        first = not even and not lowest
        fitting = [] if first else [start for start in starts if start.is_before(node, lowest, even=even)]
        if fitting:
            max(fitting, key=lambda start: _likeness(start.folders[0], folder)).add(folder)
        else:
            starts.append(_Start(folder))
    return starts


def covers(reading: LogReading, start: Sequence[RunKey]) -> bool:
    """Whether a launcher's or node's log speaks of a start, by the folder that it lies in."""
    outer = reading.place.run
    return any(
        (not outer.test or key.test == outer.test or key.test.startswith(outer.test + "/"))
        and outer.repeat in (0, key.repeat)
        and outer.folder in ("", key.folder, key.node)
        for key in start
    )


def debugged_starts(starts: Sequence[list[RunKey]], readings: Sequence[LogReading]) -> dict[str, list[RunKey]]:
    """Return which of several starts each of NCCL's own logs beside them is of, by its name, where that can be told.

    Each process writes that file anew, so it is the last start's. Where one start alone says nothing in its own logs,
    that is the one: the others ended with an error, and nothing was to end after them.
    """
    of_ranks = {one.place.run for one in readings if one.place.kind in (Kind.WOVEN, Kind.RANK)}
    loose = [one for one in readings if one.place.kind is Kind.NCCL and one.place.run not in of_ranks]
    if len(starts) < 2 or not loose:
        return {}
    telling = {one.place.run for one in readings if one.size_bytes}
    silent = [telling.isdisjoint(start) for start in starts]
    found: dict[str, list[RunKey]] = {}
    for reading in loose:
        run = reading.place.run
        own = [place for place, start in enumerate(starts) if run not in start and covers(reading, start)]
        quiet = [place for place in own if silent[place]]
        if len(own) > 1 and len(quiet) == 1:
            found[reading.place.name] = starts[quiet[0]]
    return found


def failed_to_launch(trace: Trace) -> bool:
    """Whether an exception ended torchrun itself, and not a process of it: the ranks did not meet, as a rule."""
    return trace.short_type != "ChildFailedError" and any(_LAUNCHER in frame.path for frame in trace.frames)


def _tells_of_a_start(reading: LogReading) -> bool:
    if reading.launcher.failures or (reading.place.kind is Kind.RESULTS and reading.streams):
        return True
    chains = [chain for stream in reading.streams for chain in stream.chains]
    of_launcher = reading.place.kind in (Kind.LAUNCHER, Kind.WOVEN)
    return of_launcher and any(failed_to_launch(chain[-1]) for chain in chains)


def is_alone(reading: LogReading) -> bool:
    """Whether the log of no rank is that of a job with one process: it ran tests, raised or crashed."""
    if reading.place.kind is not Kind.WOVEN or reading.launcher.failures or len(reading.streams) != 1:
        return False
    stream = reading.streams[0]
    raised = any(not failed_to_launch(chain[-1]) for chain in stream.chains)
    return stream.rank is None and bool(stream.sessions or stream.crashes or raised)


def _folders(readings: Iterable[LogReading]) -> list[_Folder]:
    folders: dict[RunKey, _Folder] = {}
    for reading in readings:
        if not _has_ranks(reading):
            continue
        folder = folders.setdefault(reading.place.run, _Folder(reading.place.run))
        if reading.place.kind is Kind.RANK:
            local = reading.place.local_rank or 0
            folder.local.add(local)
            if reading.prefix_rank is not None:
                folder.shifts[reading.prefix_rank - local] += 1
        for stream in reading.streams:
            folder.tests.update(test for session in stream.sessions for test in session.outcomes)
            if stream.clock is not None:
                folder.clock = max(stream.clock, folder.clock or stream.clock)
    return list(folders.values())


def _has_ranks(reading: LogReading) -> bool:
    if reading.place.kind is Kind.LAUNCHER:
        return False  # it quotes ranks, but their own folder is the start's
    ranked = reading.place.kind is Kind.RANK or any(stream.rank is not None for stream in reading.streams)
    return ranked or is_alone(reading)


def _likeness(first: _Folder, folder: _Folder) -> tuple[float, float]:
    """How much a folder has in common with a start's first: the tests, then the time."""
    either = first.tests | folder.tests
    alike = len(first.tests & folder.tests) / len(either) if either else 0.0
    apart = abs(first.clock - folder.clock) if first.clock is not None and folder.clock is not None else float("inf")
    return alike, -apart
