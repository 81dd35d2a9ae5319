"""What lies in zip and tar files, as sources that unpack their member each time that they are read."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from analyzers.model import Skipped, Source
from bot.archives.budget import PACKED_PIECE, Budget
from bot.archives.inflate import GZIP, crc32, inflated
from bot.zip_directory import DEFLATED, NotZipError, ZipEntry, data_range, printable, read_directory, why_bad_name

if TYPE_CHECKING:
    from bot.tar_headers import TarEntry

#: The record at a zip file's end, and the longest comment that may follow it (APPNOTE.TXT 4.3.16).
ZIP_END_BYTES = 22 + 65_535
#: Linux maps so many bytes around a byte that is touched, also those that were given back before: where the file system
#: keeps files in large blocks (folios), a whole one, which is a huge page at most.
_MAPPED_AROUND = 2 * 1024**2
SHRUNK = "it is cut short: the file shrank while it was read"
Mapped = mmap.mmap | bytes
Found = tuple[tuple[Source, ...], tuple[Skipped, ...]]


def is_zip(data: Mapped) -> bool:
    return data[:2] == b"PK" and data[2:4] in (b"\3\4", b"\5\6", b"\7\x08", b"00")


def has_zip_end(data: Mapped) -> bool:
    """Whether a zip file's directory is announced at the end, though its beginning may be damaged."""
    return data.rfind(b"PK\5\6", max(0, len(data) - ZIP_END_BYTES)) >= 0


def is_gzip(data: Mapped) -> bool:
    return data[: len(GZIP)] == GZIP


def is_tar(data: Mapped) -> bool:
    return data[257:262] == b"ustar"


def is_tar_of_nothing(data: Mapped) -> bool:
    """Whether this is how a tar file ends, with no file before it; ask this only of what is named like one."""
    return data[:1024] == bytes(1024)


def open_zip(data: Mapped, label: str, budget: Budget, *, folder: str = "") -> Found:
    """List what can be read of a zip file. `folder`: what stands before the names, "" or ending in "/"."""
    try:
        entries, skipped = read_directory(data, label=label, max_entries=budget.limits.entries)
    except NotZipError as why:
        return (), (Skipped(label, str(why)),)
    sources = [
        Source(folder + entry.name, partial(_zip_pieces, data, entry, folder + entry.name, budget), entry.size)
        for entry in entries
    ]
    return tuple(sources), tuple(skipped)


def _zip_pieces(data: Mapped, entry: ZipEntry, name: str, budget: Budget) -> Iterator[bytes]:
    if has_shrunk(data):
        budget.stop(name, SHRUNK)
        return
    place = data_range(data, entry)
    if place is None:
        budget.stop(name, "the archive is damaged here: its header is missing")
        return
    begin, end = place
    if end > len(data):
        budget.stop(name, "it is cut short: the archive ends inside it")
        end = len(data)
    packed = slices(data, begin, end)
    pieces = inflated(packed, lambda why: budget.stop(name, why)) if entry.method == DEFLATED else packed
    done, crc = 0, 0
    for piece in pieces:
        done += len(piece)
        crc = crc32(piece, crc)
        if not budget.spend(name, done, entry.packed):
            return
        yield piece
        del piece  # not kept while the next one is made: that takes the same place, still in the cache
    if crc != entry.crc:
        budget.stop(name, SHRUNK if has_shrunk(data) else "it does not fit its checksum: what it says may be wrong")


def has_shrunk(data: Mapped) -> bool:
    """Whether a mapped file is shorter than it was: a log that is rotated, an archive that is fetched anew.

    To touch what is gone would end the process at once, by SIGBUS.
    """
    return isinstance(data, mmap.mmap) and data.size() < len(data)


def slices(data: Mapped, begin: int, end: int) -> Iterator[bytes]:
    """Yield data[begin:end] in pieces, fewer if the file shrinks meanwhile.

    Pages of the file that were read are given back, so that memory stays flat.
    """
    for at in range(begin, end, PACKED_PIECE):
        upto = min(at + PACKED_PIECE, end)
        if has_shrunk(data):
            return
        try:
            yield data[at:upto]
        finally:  # nobody asks for more once a member's end is known
            _give_back(data, at, upto)


def _give_back(data: Mapped, begin: int, end: int) -> None:
    """Let the system have the pages of these bytes back, with all that was mapped around them."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        begin -= begin % _MAPPED_AROUND
        data.madvise(mmap.MADV_DONTNEED, begin, min(end + -end % _MAPPED_AROUND, len(data)) - begin)


def open_tar(data: Mapped, label: str, budget: Budget, *, folder: str = "") -> Found:
    """List what can be read of a tar file, by its headers."""
    from bot.tar_headers import DamagedTarError, read_headers  # noqa: PLC0415 (CI services hand out zip files)

    sources: list[Source] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    try:
        for entry in read_headers(data):
            if len(sources) + len(skipped) >= budget.limits.entries:
                skipped.append(Skipped(label, f"only its first {budget.limits.entries} entries are read"))
                break
            name = entry.name.removeprefix("./")
            why_not = _why_not(entry, name, seen)
            if why_not:
                skipped.append(Skipped(printable(folder + name), why_not))
            elif entry.is_file:
                seen.add(name.casefold())
                sources.append(_tar_source(data, entry, folder + name, budget))
    except DamagedTarError:
        skipped.append(Skipped(label, "it is damaged: what comes after the damage was not read"))
    return tuple(sources), tuple(skipped)


def _why_not(entry: TarEntry, name: str, seen: set[str]) -> str:
    if entry.is_folder:
        return ""
    if not entry.is_file:
        return "it is a link or a device, not a file"
    return why_bad_name(name) or ("its name is there twice" if name.casefold() in seen else "")


def _tar_source(data: Mapped, entry: TarEntry, name: str, budget: Budget) -> Source:
    begin, end = entry.begin, entry.begin + entry.size
    return Source(name, partial(_tar_pieces, data, begin, end, name, budget), entry.size)


def _tar_pieces(data: Mapped, begin: int, end: int, name: str, budget: Budget) -> Iterator[bytes]:
    done = 0
    for piece in slices(data, begin, min(end, len(data))):
        done += len(piece)
        if not budget.spend(name, done, done):
            return
        yield piece
    if has_shrunk(data):
        budget.stop(name, SHRUNK)
    if end > len(data):
        budget.stop(name, "it is cut short: the archive ends inside it")
