"""The members of a remote zip file that are needed, and no others, in a local file that is read like the whole.

First the directory, from the file's end; then the members' bytes, several ranges at a time, each to its own place. What
lies between stays a hole. Names, sizes and checksums of all members are in the directory, so that the reading of the
file tells of the others what it always does. Whatever does not fit (a directory that points elsewhere, a member that
does not match its checksum) leads to the whole file, whose own digest is known.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from analyzers.reading.layout import place
from bot.archives.budget import Budget, Limits
from bot.archives.members import open_zip
from bot.archives.nested import is_packed, mapped
from bot.github.ahead import Ahead, Extent, outgrown
from bot.github.parts import Part, to_its_end
from bot.github.ranges import RangesError, Remote
from bot.zip_directory import NotZipError, ZipEntry, directory_place, read_directory

#: Says by its name whether a member is needed.
Needs = Callable[[str], bool]
#: Holds the directory of any usual artifact, and the longest comment that may stand behind it.
END_BYTES: Final = 128 * 1024
MOST_DIRECTORY_BYTES: Final = 16 * 1024**2
#: A local header with a name and extra fields as long as can be, and a descriptor behind the member.
_MOST_AROUND: Final = 30 + 2 * 65_535 + 24
#: So many bytes are passed in the time that one more request takes.
GAP_BYTES: Final = 256 * 1024
#: Several come at a time: shorter ones bring the first members sooner, which then are read while the rest comes.
LONGEST_RANGE: Final = 2 * 1024**2
AT_ONCE: Final = 8
#: Needed members that are a larger share of the file come with the whole: one request, and verified by its digest.
MOST_SHARE: Final = 0.8


@dataclass(frozen=True)
class Fetched:
    """How many bytes came over the wire, and what was read of the logs already."""

    spent_bytes: int
    said: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class _Plan:
    """Where the needed members lie, what is to be fetched for them, and whether they may be read ahead."""

    ending: tuple[int, bytes]
    wanted: list[Extent]
    ranges: list[tuple[int, int]]
    ahead: bool

    @property
    def bytes(self) -> int:
        return sum(end - begin for begin, end in self.ranges)


class Members:
    """Fetches the needed members of one file."""

    def __init__(self, remote: Remote, part: Part, needs: Needs, ahead: Ahead) -> None:
        """`ahead` is told of all members, also if the whole file then comes."""
        self._ahead = ahead
        self.ending: tuple[int, bytes] | None = None  # what is known of the file's end, with its directory
        self._remote = remote
        self._part = part
        self._needs = needs

    async def fetch(self, *, size_bytes: int) -> Fetched:
        """Fill the part; it is not finished.

        Args:
            size_bytes: how long the file must be.
        Raises:
            RangesError: the whole file is less work, or has to be looked at for some doubt.
            DownloadError, OSError: as `Downloader.fetch`.
        """
        directory, known_from = await self._fetch_directory(size_bytes)
        # There may be many thousand members: what looks at each is done in threads.
        plan = await asyncio.to_thread(_plan, self._part.path, self._needs, directory, known_from)
        self.ending = plan.ending
        if plan.ahead:
            self._ahead.begin(plan.wanted)
        if plan.bytes > MOST_SHARE * size_bytes:
            raise RangesError("most of it is needed")
        self._ahead.arrived(self._part.path, known_from, size_bytes)
        await self._copy_all(plan.ranges)
        if long := await asyncio.to_thread(outgrown, self._part.path, plan.wanted):
            raise RangesError(f"{long}: it does not fit between its neighbours")
        read = await self._ahead.finish()
        if doubt := await asyncio.to_thread(_first_doubt, self._part.path, plan.wanted, read.names):
            raise RangesError(doubt)
        return Fetched(self._remote.spent_bytes, read.said)

    async def _fetch_directory(self, size_bytes: int) -> tuple[int, int]:
        """Write the end of the file to its place; return where the directory and what is known begin."""
        at, ending = await self._remote.end(END_BYTES)
        if self._remote.size_bytes != size_bytes:
            raise RangesError(f"it has {self._remote.size_bytes} bytes, GitHub says {size_bytes}")
        await to_its_end(self._part.reserve, size_bytes)
        await self._write(at, ending)
        begin, end = await asyncio.to_thread(_directory_place, self._part.path)
        if end - begin > MOST_DIRECTORY_BYTES:
            raise RangesError("its directory is too long")
        if begin < at:
            await self._remote.copy(begin, at, self._write)
        return begin, min(begin, at)

    async def _copy_all(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy the ranges, several at a time; the first failure ends all."""
        waiting = deque(ranges)

        async def work() -> None:
            while waiting:
                await self._remote.copy(*waiting.popleft(), self._write)

        workers = [asyncio.create_task(work()) for _ in range(min(AT_ONCE, len(waiting)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            # They write to the part, which is closed next.
            await asyncio.gather(*workers, return_exceptions=True)

    async def _write(self, at: int, chunk: bytes) -> None:
        await to_its_end(self._part.write_at, at, chunk)
        self._ahead.arrived(self._part.path, at, at + len(chunk))


def extents(entries: Sequence[ZipEntry], needed: Iterable[ZipEntry], directory: int) -> list[Extent]:
    """Return where the needed members lie, in the order of their places; each lasts at most until the next one.

    Args:
        entries: all members.
        directory: where it begins.
    Raises:
        RangesError: a member lies outside of the file.
    """
    follows = dict(pairwise([*sorted(entry.offset for entry in entries), directory]))
    found = []
    for entry in sorted(needed, key=lambda entry: entry.offset):
        if entry.offset < 0 or entry.offset + entry.packed > directory:
            raise RangesError("its directory points outside of the file")
        found.append(Extent(entry, min(follows[entry.offset], entry.offset + entry.packed + _MOST_AROUND)))
    return found


def spans(wanted: Iterable[Extent], *, known_from: int) -> list[tuple[int, int]]:
    """Return what to read for these members, which are sorted: ranges, near ones joined, long ones divided.

    Args:
        known_from: what comes after this is known already.
    """
    joined: list[list[int]] = []
    for one in wanted:
        if joined and one.entry.offset - joined[-1][1] <= GAP_BYTES:
            joined[-1][1] = one.end
        else:
            joined.append([one.entry.offset, one.end])
    clipped = [(start, min(stop, known_from)) for start, stop in joined]
    return [(at, min(at + LONGEST_RANGE, stop)) for start, stop in clipped for at in range(start, stop, LONGEST_RANGE)]


def _directory_place(path: Path) -> tuple[int, int]:
    try:
        with path.open("rb") as file:
            return directory_place(mapped(file))
    except NotZipError as why:
        raise RangesError(str(why)) from why


def _read_from(path: Path, begin: int) -> tuple[int, bytes]:
    with path.open("rb") as file:
        file.seek(begin)
        return begin, file.read()


def _plan(path: Path, needs: Needs, directory: int, known_from: int) -> _Plan:
    """Plan by the directory, which is there with all that comes behind `known_from`.

    Raises:
        RangesError: as `extents`.
    """
    entries = _entries(path)
    wanted = extents(entries, [entry for entry in entries if needs(entry.name)], directory)
    nested = any(is_packed(entry.name) for entry in entries)  # they would be opened with the first member
    return _Plan(_read_from(path, known_from), wanted, spans(wanted, known_from=known_from), ahead=not nested)


def _entries(path: Path) -> list[ZipEntry]:
    with path.open("rb") as file:
        entries, _ = read_directory(mapped(file), label=path.name, max_entries=Limits().entries)
    return entries


def _first_doubt(path: Path, wanted: Iterable[Extent], read: frozenset[str]) -> str:
    """Read the wanted members as the analysis will, but for those that were; say what is wrong with one, or "".

    What was read without trouble matches its checksum, if it is a log: others are not read to their end.
    """
    names = (one.entry.name for one in wanted)
    unread = {name for name in names if name not in read or place(name) is None}
    if not unread:
        return ""
    budget = Budget()
    with path.open("rb") as file:
        sources, _ = open_zip(mapped(file), path.name, budget)
    for source in sources:
        if source.name in unread:
            for _ in source.chunks():
                if budget.problems:
                    break
    return next((f"{name}: {why}" for name, why in budget.problems.items()), "")
