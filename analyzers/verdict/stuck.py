"""Where a process stood when its time was up: the stacks that faulthandler or pytest-timeout print of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzers.model import Category, Confidence, Error, Finding, Role
from analyzers.parsers.frames import Frame
from analyzers.parsers.native import STUCK
from analyzers.parsers.readings import StreamReading
from analyzers.records import replace
from analyzers.verdict.category import Kind
from analyzers.verdict.findings import of_crash

#: Lines after the stacks that do not yet show that the process went on: those of its end.
_LAST_WORDS = 40
#: Where a rank waits for other ranks: in the collective, or for the GPU that is busy with it.
_WAITING = ("/torch/distributed/", "/torch/cuda/", "/torch/autograd/")


def kind_of_time_limit(frames: Sequence[Frame]) -> Kind:
    """A test that its time limit ended while it waited for the other ranks is not the one that hangs."""
    if frames and "torch/distributed/" in frames[-1].path:
        return Kind(Category.COLLECTIVE_TIMEOUT, Role.CONSEQUENCE)
    return Kind(Category.TEST_ERROR)


def find_stuck(rank: int, streams: Iterable[StreamReading], running: str | None, *, in_tests: bool) -> Finding | None:
    """Return where a rank of which nothing else is known stood when faulthandler's time was up.

    A dump need not end anything (`faulthandler_timeout` of pytest only tells), so it counts as the last word only, and
    little before it is known that other ranks waited for this one.

    Args:
        running: the test that never ended. What the stack shows of another one was survived.
        in_tests: pytest ran tests on this rank.
    """
    test = running.rpartition("::")[2].partition("[")[0] if running else None
    for stream in streams:
        for dump in stream.crashes:
            if dump.signal != STUCK or not dump.frames or stream.lines - dump.end > _LAST_WORDS:
                continue
            if in_tests and not any(frame.function.rpartition(".")[2] == test for frame in dump.frames):
                continue
            waits = any(part in dump.frames[-1].path for part in _WAITING)
            kind = Kind(Category.COLLECTIVE_TIMEOUT, Role.CONSEQUENCE if waits else Role.CAUSE)
            found = of_crash(rank, stream.name, dump, kind)
            return replace(found, error=Error(None, dump.message), confidence=Confidence.LOW)
    return None
