"""Members of a growing archive are read while the rest of it arrives: once it is whole, little is left to do.

Nothing depends on it: a member that was not read ahead is read later, and what was read of a file that turns out to be
another than announced is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

from bot.archives.nested import is_packed
from bot.zip_directory import ZipEntry

#: So many packed bytes are worth a worker's turn; they take it about a tenth of a second.
BATCH_BYTES: Final = 4 * 1024**2
#: What comes out of all members together. A bomb is left to the reading proper, which has limits for the whole.
MOST_READ_BYTES: Final = 4 * 1024**3

#: Has these members of the archive read by a worker that is idle, and returns what they said and how many bytes came
#: out of them; None if they could not be read without trouble. None instead of an awaitable: no worker is idle.
ReadAhead = Callable[[Path, frozenset[str]], Awaitable[tuple[bytes, int] | None] | None]


class Ahead:
    """The reading ahead of one download."""

    def __init__(self, read: ReadAhead | None) -> None:
        self._read = read
        self._members: list[tuple[int, ZipEntry]] = []
        self._tasks: list[asyncio.Task[tuple[bytes, int] | None]] = []
        self._read_bytes = 0

    def begin(self, entries: Iterable[ZipEntry], needed: Iterable[ZipEntry], directory: int) -> None:
        """Take the members that are needed; each lasts at most until the next one, the last until the directory."""
        places = sorted(entries, key=lambda entry: entry.offset)
        if self._read is None or not places or any(is_packed(entry.name) for entry in places):
            return  # an archive inside would be opened with the first member
        ends = dict(
            zip((entry.name for entry in places), [*(one.offset for one in places[1:]), directory], strict=True)
        )
        self._members = sorted(((ends[entry.name], entry) for entry in needed), key=lambda member: member[0])

    def advance(self, path: Path, size: int) -> None:
        """Take note that the first `size` bytes lie at `path`, and have members read if enough have arrived."""
        arrived = 0
        while arrived < len(self._members) and self._members[arrived][0] <= size:
            arrived += 1
        batch = self._members[:arrived]
        last = arrived == len(self._members)
        if self._read is None or not batch or (sum(one.packed for _, one in batch) < BATCH_BYTES and not last):
            return
        reading = self._read(path, frozenset(one.name for _, one in batch))
        if reading is not None:
            del self._members[:arrived]
            self._tasks.append(asyncio.ensure_future(reading))
            self._tasks[-1].add_done_callback(self._count)

    def _count(self, done: asyncio.Task[tuple[bytes, int] | None]) -> None:
        read = None if done.cancelled() or done.exception() else done.result()
        self._read_bytes += read[1] if read is not None else MOST_READ_BYTES
        if self._read_bytes >= MOST_READ_BYTES:
            self._members = []

    async def finish(self) -> tuple[bytes, ...]:
        """Wait for what is being read, and return what all said."""
        found = await asyncio.gather(*self._tasks)
        return tuple(read[0] for read in found if read is not None)

    def drop_said(self) -> None:
        """Forget what was said: it was read from parts, and the whole comes after all."""
        self._tasks = []

    def drop(self) -> None:
        """Read no further, and forget what was said: the file is another one, or will not come."""
        self._members = []
        for task in self._tasks:
            task.cancel()
        self._tasks = []
