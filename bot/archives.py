"""What there is to analyse: a folder, a zip file, one log or standard input, as a `Bundle` of streams.

Nothing is unpacked to disk and nothing is held whole: a member is inflated again each time that it is read, in pieces.
Whatever is wrong with one member is told by `Opened.trouble` after the reading; the rest is read all the same.
"""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from analyzers.model import Bundle, Skipped, Source
from bot.zip_directory import DEFLATED, NotZipError, ZipEntry, data_range, read_directory

PIECE = 256 * 1024
STDIN = "-"
JOB_LOG = "job.log"


class UnreadableError(Exception):
    """The path that was asked for cannot be read at all; the message is for the person who gave it."""


@dataclass(frozen=True)
class Limits:
    """How much is read of one archive, in bytes that really came out of it, whatever its directory claims."""

    entries: int = 50_000
    file_bytes: int = 4 * 1024**3
    total_bytes: int = 16 * 1024**3
    #: Above this many bytes a member is cut when it is packed tighter than `ratio`: no log that somebody reads is.
    ratio_from_bytes: int = 256 * 1024**2
    ratio: int = 400


@dataclass
class Budget:
    """What has been read of each member of one bundle, and what went wrong. A second reading is not counted twice."""

    limits: Limits = field(default_factory=Limits)
    read: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    total: int = 0
    watch: Callable[[int], None] | None = None  # told the total now and then, to show progress

    def spend(self, name: str, done: int, packed: int) -> bool:
        """Book that `done` bytes of a member came out of `packed` bytes; False if reading must stop here."""
        before = self.read.get(name, 0)
        if done > before:
            self.read[name] = done
            self.total += done - before
            if self.watch is not None:
                self.watch(self.total)
        limits = self.limits
        if done > limits.file_bytes:
            return self.stop(name, f"only its first {limits.file_bytes // 1024**2} MB were read")
        if self.total > limits.total_bytes:
            return self.stop(name, f"reading stopped here: {limits.total_bytes // 1024**2} MB were unpacked in all")
        if done > limits.ratio_from_bytes and done > limits.ratio * max(packed, 1):
            return self.stop(name, f"reading stopped: it grows more than {limits.ratio} times, as no log does")
        return True

    def stop(self, name: str, why: str) -> bool:
        """Note why a member could not be read to its end."""
        self.problems.setdefault(name, why)
        return False


@dataclass(frozen=True)
class Opened:
    """A bundle and, once it has been read, what could not be read of it."""

    bundle: Bundle
    budget: Budget

    def trouble(self) -> tuple[Skipped, ...]:
        """Return what went wrong while reading, by name; complete only after the analysis."""
        return tuple(Skipped(name, why) for name, why in sorted(self.budget.problems.items()))


def open_bundle(
    path: str | None, *, job_log: str | None = None, job_name: str | None = None, budget: Budget | None = None
) -> Opened:
    """Open what is at `path`; a file that is no zip file is taken for the job's log.

    Args:
        path: a folder, a zip file, a log, or "-" for standard input (a zip file or the job's log); None for nothing.
        job_log: the job's log, if it is a file of its own.
        budget: the limits to keep, and where the reading is booked.
    Raises:
        UnreadableError: one of the paths is not there, may not be read, or is no file.
    """
    budget = budget or Budget()
    sources: tuple[Source, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    log = None if job_log is None else _open_log(job_log, budget)
    if path is not None and path != STDIN and _is_folder(path):
        sources, skipped = _open_folder(Path(path), budget)
    elif path is not None:
        data = _map_stdin() if path == STDIN else _map_file(path)
        if _is_zip(data):
            sources, skipped = _open_zip(data, STDIN if path == STDIN else Path(path).name, budget)
        elif log is None:
            log = Source(JOB_LOG, partial(_mapped_pieces, data, budget), len(data))
        else:
            raise UnreadableError(f"{path}: neither a folder nor a zip file, and --job-log already names the job's log")
    return Opened(Bundle(sources=sources, job_log=log, job_name=job_name, skipped=skipped), budget)


def _is_folder(path: str) -> bool:
    """Tell a folder from a file that can be read; neither is an error."""
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
        if kind == stat.S_IFDIR:
            os.scandir(path).close()
        elif kind == stat.S_IFREG:
            Path(path).open("rb").close()
        else:
            raise UnreadableError(f"{path}: neither a folder nor a regular file")
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
        raise UnreadableError(f"{path}: {reason}") from None
    return kind == stat.S_IFDIR


def _open_log(path: str, budget: Budget) -> Source:
    if _is_folder(path):
        raise UnreadableError(f"{path}: the job's log must be a file, not a folder")
    return Source(JOB_LOG, partial(_path_pieces, Path(path), JOB_LOG, budget), Path(path).stat().st_size)


def _map_file(path: str) -> mmap.mmap | bytes:
    with Path(path).open("rb") as file:
        return _map(file)


def _map_stdin() -> mmap.mmap | bytes:
    """Keep standard input in an unnamed file: a zip file is read from its end, and every log more than once."""
    with tempfile.TemporaryFile() as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool, PIECE)
        spool.flush()
        return _map(spool)


def _map(file: BinaryIO) -> mmap.mmap | bytes:
    """Map a file into memory; the map outlives the file's closing. An empty file cannot be mapped."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def _is_zip(data: mmap.mmap | bytes) -> bool:
    return data[:2] == b"PK" and data[2:4] in (b"\3\4", b"\5\6", b"\7\x08", b"00")


def _mapped_pieces(data: mmap.mmap | bytes, budget: Budget) -> Iterator[bytes]:
    for place in range(0, len(data), PIECE):
        piece = data[place : place + PIECE]
        if not budget.spend(JOB_LOG, place + len(piece), place + len(piece)):
            return
        yield piece


def _open_folder(root: Path, budget: Budget) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    sources: list[Source] = []
    skipped: list[Skipped] = []
    for folder, folders, files in os.walk(root, onerror=lambda why: skipped.append(_unlisted(root, why))):
        folders.sort()
        for file in sorted(files):
            path = Path(folder, file)
            name = path.relative_to(root).as_posix().encode("utf-8", "replace").decode()
            if len(sources) >= budget.limits.entries:
                skipped.append(Skipped(root.name, f"only its first {budget.limits.entries} files are read"))
                return tuple(sources), tuple(skipped)
            if not path.is_file() or path.is_symlink():
                skipped.append(Skipped(name, "it is a link or a device, not a file"))
                continue
            sources.append(Source(name, partial(_path_pieces, path, name, budget), path.stat().st_size))
    return tuple(sources), tuple(skipped)


def _unlisted(root: Path, why: OSError) -> Skipped:
    return Skipped(os.path.relpath(why.filename, root), f"the folder could not be read: {why.strerror}")


def _path_pieces(path: Path, name: str, budget: Budget) -> Iterator[bytes]:
    done = 0
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(PIECE):
                done += len(piece)
                if not budget.spend(name, done, done):
                    return
                yield piece
    except OSError as why:
        budget.stop(name, f"it could not be read: {why.strerror}")


def _open_zip(data: mmap.mmap | bytes, label: str, budget: Budget) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    try:
        entries, skipped = read_directory(data, label=label, max_entries=budget.limits.entries)
    except NotZipError as why:
        return (), (Skipped(label, str(why)),)
    sources = [Source(entry.name, partial(_member_pieces, data, entry, budget), entry.size) for entry in entries]
    return tuple(sources), tuple(skipped)


def _member_pieces(data: mmap.mmap | bytes, entry: ZipEntry, budget: Budget) -> Iterator[bytes]:
    place = data_range(data, entry)
    if place is None:
        budget.stop(entry.name, "the archive is damaged here: its header is missing")
        return
    begin, end = place
    if end > len(data):
        budget.stop(entry.name, "it is cut short: the archive ends inside it")
        end = len(data)
    packed = (data[at : min(at + PIECE, end)] for at in range(begin, end, PIECE))
    pieces = _inflated(packed, lambda why: budget.stop(entry.name, why)) if entry.method == DEFLATED else packed
    done, crc = 0, 0
    for piece in pieces:
        done += len(piece)
        crc = _crc32(piece, crc)
        if not budget.spend(entry.name, done, entry.packed):
            return
        yield piece
    if crc != entry.crc:
        budget.stop(entry.name, "it does not fit its checksum: what it says may be wrong")


def _inflated(packed: Iterator[bytes], complain: Callable[[str], object]) -> Iterator[bytes]:
    inflater, damage = _new_inflater()
    given = b""
    try:
        while not inflater.eof:
            if inflater.needs_input:
                given = next(packed, b"")
                if not given:
                    complain("it is cut short")
                    return
            piece = inflater.decompress(given, PIECE)
            given = b""
            if piece:
                yield piece
    except damage:
        complain("it is damaged: it cannot be unpacked to its end")


def _fast_crc32() -> Callable[[bytes, int], int]:
    try:
        from isal import isal_zlib  # noqa: PLC0415  (a wheel that not every platform has)
    except ImportError:
        return zlib.crc32
    return isal_zlib.crc32


_crc32 = _fast_crc32()


class _Inflater(Protocol):
    """An inflater that says when it wants input and never gives more than it is asked for."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _ZlibInflater:
    """The standard library's inflater, with the manners of `IgzipDecompressor`."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
        self._full = False  # the last piece was as long as allowed: there may be more without new input

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inner.unconsumed_tail and not self._inner.eof

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        piece = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._full = len(piece) == max_length
        return piece


def _new_inflater() -> tuple[_Inflater, type[Exception]]:
    """Take Intel's inflater, three times as fast, where it is to be had; return what it raises on damaged data too."""
    try:
        from isal import igzip_lib  # noqa: PLC0415  (a wheel that not every platform has)
    except ImportError:
        return _ZlibInflater(), zlib.error
    damage = cast("type[Exception]", igzip_lib.IsalError)  # its type stub calls the class an instance
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE), damage
