"""The nouns of Flight Recorder analysis: one rank's dump, and the verdict over all of them.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp (keys of the dump, versions 2.x), FlightRecorderDetail.hpp (how
each is filled).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from analyzers.model import Confidence
from analyzers.records import dataclass

Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Frame:
    """One frame of the Python stack that issued an operation; only dumps taken with stack traces have them."""

    path: str
    line: int
    function: str


@dataclass(frozen=True)
class Group:
    """A process group: its name, what the framework calls it, its global ranks in the order of their group ranks."""

    name: str
    description: str
    ranks: tuple[int, ...]

    @property
    def title(self) -> str:
        """How a sentence calls the group."""
        named = self.description if self.description not in ("", "undefined") else "process group"
        return f"{named} ({self.name})"


@dataclass(frozen=True)
class Progress:
    """Counters of one group on one rank; sequence numbers count from 1, None means that nothing is known."""

    enqueued: int | None = None
    completed: int | None = None


@dataclass(frozen=True)
class Entry:
    """One recorded operation.

    `record` orders the operations of one rank across its groups; `seq` counts the group's collectives and `p2p_seq` its
    sends and receives; `operation` has no backend prefix ("all_reduce", "send 0->3"); `state` is "scheduled", "started"
    or "completed".
    """

    record: int
    pg_id: int
    group: str
    seq: int
    p2p_seq: int
    op_id: int
    operation: str
    is_p2p: bool
    input_sizes: Sizes
    output_sizes: Sizes
    input_dtypes: tuple[str, ...]
    output_dtypes: tuple[str, ...]
    state: str
    created_ns: int
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Dump:
    """What one rank wrote: its groups by name, its counters by local group number, its entries in recorded order."""

    name: str
    rank: int
    version: str
    groups: Mapping[str, Group]
    status: Mapping[int, Progress]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Unreadable:
    """A file that should have been a dump and could not be read; `why` is a sentence for people."""

    name: str
    why: str


class Reason(StrEnum):
    """What is held against a rank."""

    BEHIND = "behind"  # it never entered an operation that others wait in
    ABSENT = "absent"  # the same, and it left no dump
    STALLED = "stalled"  # it entered what its peers have finished, and did not finish it
    STOPPED = "stopped"  # while waiting like its peers it issued less than all of them
    NOT_STARTED = "not started"  # its peers' kernels run, its own never did
    OPERATION = "mismatched operation"
    INPUT_SIZE = "mismatched input size"
    OUTPUT_SIZE = "mismatched output size"
    DTYPE = "mismatched dtype"
    ELSEWHERE = "elsewhere"  # it stands in an operation of its own, and what its peers stand in needs it
    ORDER = "order"  # a ring of ranks, each waiting for the next
    TOGETHER = "together"  # all arrived, none finished, and nothing tells them apart


@dataclass(frozen=True)
class Culprit:
    """One accused rank and the operation that shows it; `sizes` are of the input, `expected` is what its peers did.

    `frames` is the stack that issued the operation, of a waiting peer if the accused never came to it.
    """

    rank: int
    reason: Reason
    group: Group
    seq: int
    operation: str
    sizes: Sizes = ()
    expected: str | None = None
    confidence: Confidence = Confidence.HIGH
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class HangVerdict:
    """Who hung a job, by its dumps. Ranks are global and sorted; culprits, waiting and suspects are disjoint.

    Attributes:
        culprits: one per accused rank; empty when nobody waits, or nothing tells the ranks apart.
        suspects: weaker candidates, told only beside (or instead of) culprits.
        waiting: ranks with unfinished operations that are not accused.
        absent: members of a group that left no dump, accused or not.
        group, seq, operation, sizes: of the first culprit (or suspect); None and "" when nobody waits.
        sentence: the verdict in words.
    """

    culprits: tuple[Culprit, ...]
    suspects: tuple[Culprit, ...]
    waiting: tuple[int, ...]
    absent: tuple[int, ...]
    confidence: Confidence
    sentence: str
    group: Group | None = None
    seq: int | None = None
    operation: str = ""
    sizes: Sizes = ()

    @property
    def culprit_ranks(self) -> tuple[int, ...]:
        return tuple(culprit.rank for culprit in self.culprits)

    @property
    def suspect_ranks(self) -> tuple[int, ...]:
        return tuple(suspect.rank for suspect in self.suspects)
