"""What there is to analyse: a folder, a zip file, one log or standard input, as a `Bundle` of streams.

Nothing is unpacked to disk and nothing is held whole: a member is inflated again each time that it is read, in pieces.
Whatever is wrong with one member is told by `Opened.trouble` after the reading; the rest is read all the same.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from functools import partial

from analyzers.model import Bundle, Skipped, Source
from analyzers.records import dataclass
from bot.archives.budget import FILE_PIECE, PIECE, Budget, UnreadableError
from bot.archives.inflate import gunzipped
from bot.archives.members import (
    SHRUNK,
    Found,
    Mapped,
    has_shrunk,
    has_zip_end,
    is_gzip,
    is_tar,
    is_tar_of_nothing,
    is_zip,
    open_tar,
    open_zip,
    slices,
)
from bot.archives.nested import expand, laid_down, mapped, spooled, unpacked
from bot.archives.packers import packed_by
from bot.zip_directory import ends_in_directory

STDIN = "-"
#: A file named so is never taken for a job's log.
ARCHIVE_NAMES = (".zip", ".tar", ".tgz", ".tar.gz")
#: Listing folders calls itself for each level; no artifact of logs is a tenth as deep.
DEEPEST_FOLDER = 200
JOB_LOG = "job.log"


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
        UnreadableError: one of the paths is not there, may not be read, is no file, or is named like an archive and is
            none; or there is not one byte to read.
    """
    budget = budget or Budget()
    sources: tuple[Source, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    log = None if job_log is None else _open_log(job_log, budget)
    if path is not None and path != STDIN and _is_folder(path):
        sources, skipped = _open_folder(path, budget)
    elif path is not None:
        data = _keep_stdin() if path == STDIN else _map_file(path)
        if not len(data) and (log is None or path.lower().endswith(ARCHIVE_NAMES)):
            raise UnreadableError(
                "standard input: the input is empty" if path == STDIN else f"{path}: the file is empty"
            )
        found = _open_archive(data, STDIN if path == STDIN else os.path.basename(path), budget)
        if found is None:
            _refuse_packers(data, path)
        if found is not None:
            sources, skipped = found
        elif path.lower().endswith(ARCHIVE_NAMES):
            raise UnreadableError(f"{path}: it is named like an archive, but is no zip or tar file")
        elif log is None:
            log = _mapped_log(data, budget)
        else:
            raise UnreadableError(f"{path}: neither a folder nor an archive, and --job-log already names the job's log")
    if log is not None and log.size_bytes == 0 and path is None:
        raise UnreadableError(f"{job_log}: the file is empty")
    sources, skipped = expand((sources, skipped), budget)
    return Opened(Bundle(sources=sources, job_log=log, job_name=job_name, skipped=skipped), budget)


def _open_archive(data: Mapped, label: str, budget: Budget) -> Found | None:
    """List what is in an archive, told by its first bytes or by the directory at its end; None if it is none."""
    if is_zip(data) or (label.lower().endswith(".zip") and has_zip_end(data)) or ends_in_directory(data):
        return open_zip(data, label, budget)
    if is_tar(data) or (label.lower().endswith(".tar") and is_tar_of_nothing(data)):
        return open_tar(data, label, budget)
    if is_gzip(data) and _holds_tar(next(gunzipped(slices(data, 0, len(data)), lambda _: None), b""), label):
        text = unpacked(Source(label, partial(slices, data, 0, len(data)), len(data)), label, budget)
        try:
            return open_tar(spooled(text, budget), label, budget)
        except OSError as why:
            raise UnreadableError(f"{label}: it could not be unpacked: {why.strerror}") from None
    return None


def _holds_tar(text: bytes, label: str) -> bool:
    return is_tar(text) or (label.lower().endswith((".tgz", ".tar.gz")) and is_tar_of_nothing(text))


def _is_folder(path: str) -> bool:
    """Tell a folder from a file that can be read; neither is an error."""
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind == stat.S_IFDIR:
            os.scandir(path).close()
        elif kind == stat.S_IFREG:
            open(path, "rb").close()
        else:
            raise UnreadableError(f"{path}: neither a folder nor a regular file")
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
        raise UnreadableError(f"{path or repr(path)}: {reason}") from None
    return kind == stat.S_IFDIR


def _open_log(path: str, budget: Budget) -> Source:
    if _is_folder(path):
        raise UnreadableError(f"{path}: the job's log must be a file, not a folder")
    data = _map_file(path)
    _refuse_packers(data, path)
    return _mapped_log(data, budget)


def _refuse_packers(data: Mapped, path: str) -> None:
    if packer := packed_by(data[:16]):
        label = "standard input" if path == STDIN else path
        raise UnreadableError(
            f"{label}: it is packed with {packer}, which is not read: unpack it, or pack it as zip or tar.gz"
        )


def _mapped_log(data: Mapped, budget: Budget) -> Source:
    if is_gzip(data):
        return unpacked(Source(JOB_LOG, partial(slices, data, 0, len(data)), len(data)), JOB_LOG, budget)
    return Source(JOB_LOG, partial(_mapped_pieces, data, budget), len(data))


def _map_file(path: str) -> Mapped:
    try:
        with open(path, "rb") as file:
            return mapped(file)
    except OSError as why:  # thrown away since it was looked at, or on a file system that maps nothing
        raise UnreadableError(f"{path}: {why.strerror}") from None


def _keep_stdin() -> Mapped:
    try:
        return laid_down(_stdin_pieces())
    except OSError as why:
        raise UnreadableError(f"standard input: it could not be kept while it is read: {why.strerror}") from None


def _stdin_pieces() -> Iterator[bytes]:
    # Not a buffered read: it would go on reading after Ctrl-C until its buffer is full.
    if sys.stdin is None:
        raise UnreadableError("standard input: it is closed")
    while piece := os.read(sys.stdin.fileno(), PIECE):
        yield piece


def _mapped_pieces(data: Mapped, budget: Budget) -> Iterator[bytes]:
    done = 0
    for piece in slices(data, 0, len(data)):
        done += len(piece)
        if not budget.spend(JOB_LOG, done, done):
            return
        yield piece
    if has_shrunk(data):
        budget.stop(JOB_LOG, SHRUNK)


def _open_folder(root: str, budget: Budget) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    sources: list[Source] = []
    skipped: list[Skipped] = []
    for folder, folders, files in os.walk(root, onerror=lambda why: skipped.append(_unlisted(root, why))):
        folders.sort()
        inside = os.path.relpath(folder, root)
        if folders and inside.count(os.sep) >= DEEPEST_FOLDER:
            folders.clear()
            skipped.append(Skipped(_as_name(inside), "what is in its folders is not read: they lie too deep"))
        for file in sorted(files):
            path = os.path.join(folder, file)
            name = _as_name(file if inside == os.curdir else os.path.join(inside, file))
            if len(sources) >= budget.limits.entries:
                label = os.path.basename(os.path.abspath(root))
                skipped.append(Skipped(label, f"only its first {budget.limits.entries} files are read"))
                return tuple(sources), tuple(skipped)
            if not os.path.isfile(path) or os.path.islink(path):
                skipped.append(Skipped(name, "it is a link or a device, not a file"))
                continue
            sources.append(Source(name, partial(_path_pieces, path, name, budget), os.stat(path).st_size))
    return tuple(sources), tuple(skipped)


def _as_name(path: str) -> str:
    return path.replace(os.sep, "/").encode("utf-8", "replace").decode()


def _unlisted(root: str, why: OSError) -> Skipped:
    return Skipped(_as_name(os.path.relpath(why.filename, root)), f"the folder could not be read: {why.strerror}")


def _path_pieces(path: str, name: str, budget: Budget) -> Iterator[bytes]:
    done = 0
    try:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(FILE_PIECE):
                done += len(piece)
                if not budget.spend(name, done, done):
                    return
                yield piece
    except OSError as why:
        budget.stop(name, f"it could not be read: {why.strerror}")
