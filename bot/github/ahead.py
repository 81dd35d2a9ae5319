"""Members of a growing archive are read while the rest of it arrives: once it is whole, little is left to do.

Nothing depends on it: a member that was not read ahead is read later, and what was read of a file that turns out to be
another than announced is thrown away.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bot.archives.nested import mapped
from bot.zip_directory import ZipEntry, data_range

#: So many packed bytes are worth a worker's turn; they take it about a tenth of a second.
BATCH_BYTES: Final = 4 * 1024**2
#: What comes out of all members together. A bomb is left to the reading proper, which has limits for the whole.
MOST_READ_BYTES: Final = 4 * 1024**3

#: Has these members of the archive read by a worker that is idle, and returns what they said and how many bytes came
#: out of them; None if they could not be read without trouble. None instead of an awaitable: no worker is idle.
ReadAhead = Callable[[Path, frozenset[str]], Awaitable[tuple[bytes, int] | None] | None]


@dataclass(frozen=True)
class Extent:
    """A member, and where the bytes end that its reading needs; they begin with its header."""

    entry: ZipEntry
    end: int


def outgrown(path: Path, extents: Sequence[Extent]) -> str:
    """Return the name of a member that is longer than its extent, "" if none is; their headers must be there.

    What the directory says of its place and size leaves out the header in front of it, of which only the header itself
    says how long it is: one that lies could have been read before its end had arrived. Blocking.
    """
    with path.open("rb") as file:
        data = mapped(file)
    for one in extents:
        place = data_range(data, one.entry)
        if place is not None and place[1] > one.end:
            return one.entry.name
    return ""


@dataclass(frozen=True)
class ReadSoFar:
    """What was said, and by which members."""

    said: tuple[bytes, ...] = ()
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Batch:
    names: frozenset[str]
    task: asyncio.Future[tuple[bytes, int] | None]


class Ahead:
    """The reading ahead of one download."""

    def __init__(self, read: ReadAhead | None) -> None:
        self._read = read
        self._path = Path()
        self.extents: tuple[Extent, ...] = ()  # all that it was begun with
        self._extents: tuple[Extent, ...] = ()  # those that are still waited for
        self._offsets: list[int] = []
        self._missing: list[int] = []  # bytes of each member that have not arrived
        self._incomplete = 0
        self._waiting: list[ZipEntry] = []  # those that have arrived, until a worker takes them
        self._batches: list[_Batch] = []
        self._forgotten: list[_Batch] = []
        self._read_bytes = 0

    def begin(self, extents: Sequence[Extent]) -> None:
        """Take the members that are to be read, which share no bytes. Of none of them is anything there yet."""
        self.extents = tuple(sorted(extents, key=lambda one: one.entry.offset)) if self._read is not None else ()
        self._watch(self.extents)

    def _watch(self, extents: tuple[Extent, ...]) -> None:
        self._extents = extents
        self._offsets = [one.entry.offset for one in self._extents]
        self._wait_for_all()

    def arrived(self, path: Path, begin: int, end: int) -> None:
        """Take note that these bytes of the file lie at `path`, each told once; have members read if enough are whole.

        Args:
            begin: the first of the bytes, as counted from the start of the file; `end` is behind the last.
        """
        self._path = path
        for at in range(max(0, bisect_right(self._offsets, begin) - 1), len(self._extents)):
            member = self._extents[at]
            if member.entry.offset >= end:
                break
            came = min(end, member.end) - max(begin, member.entry.offset)
            if came > 0:
                self._missing[at] -= came
                if not self._missing[at]:
                    self._incomplete -= 1
                    self._waiting.append(member.entry)
        self._read_waiting()

    def _read_waiting(self) -> None:
        """Give what waits to a worker, if it is worth one, or the last."""
        enough = not self._incomplete or sum(one.packed for one in self._waiting) >= BATCH_BYTES
        if self._read is None or not self._waiting or not enough:
            return
        names = frozenset(one.name for one in self._waiting)
        reading = self._read(self._path, names)
        if reading is not None:
            self._waiting = []
            self._batches.append(_Batch(names, asyncio.ensure_future(reading)))
            self._batches[-1].task.add_done_callback(self._count)

    def _count(self, done: asyncio.Future[tuple[bytes, int] | None]) -> None:
        read = None if done.cancelled() or done.exception() else done.result()
        self._read_bytes += read[1] if read is not None else MOST_READ_BYTES
        if self._read_bytes >= MOST_READ_BYTES:
            self._watch(())

    async def finish(self) -> ReadSoFar:
        """Wait for what is being read, also of what found no idle worker yet, and return what all said."""
        while self._waiting and (running := [one.task for one in self._batches if not one.task.done()]):
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            self._read_waiting()
        found = await asyncio.gather(*(one.task for one in self._batches))
        read = [(batch.names, said[0]) for batch, said in zip(self._batches, found, strict=True) if said is not None]
        return ReadSoFar(tuple(said for _, said in read), frozenset().union(*(names for names, _ in read)))

    def start_over(self) -> None:
        """Forget what was said and what arrived: it was of parts, and the whole comes after all."""
        # They go on: ending them would cost their workers, which are soon done.
        self._forgotten += self._batches
        self._batches = []
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        self._missing = [one.end - one.entry.offset for one in self._extents]
        self._incomplete = len(self._extents)
        self._waiting = []

    def drop(self) -> None:
        """Read no further, and forget what was said: the file is another one, or will not come."""
        self._watch(())
        for batch in self._batches + self._forgotten:
            batch.task.cancel()
        self._batches = []
