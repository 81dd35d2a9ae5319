"""Archives and packed logs inside of a folder or an archive are read as if they were folders and logs."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO

from analyzers.model import Skipped, Source
from bot.archives.budget import Budget
from bot.archives.inflate import gunzipped
from bot.archives.members import Found, Mapped, is_gzip, is_tar, is_zip, open_tar, open_zip
from bot.archives.packers import hidden_by
from bot.zip_directory import ends_in_directory

#: An archive in an archive in an archive is nobody's log artifact.
DEEPEST = 2
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def expand(found: Found, budget: Budget, *, depth: int = 1) -> Found:
    """Replace each archive among the sources by what is in it, and let each packed log be read unpacked."""
    sources: list[Source] = []
    skipped = list(found[1])
    names = {source.name for source in found[0]}
    for source in found[0]:
        opened = _open(source, budget, depth=depth)
        if opened is not None:
            inner = expand(opened, budget, depth=depth + 1)
            sources.extend(inner[0])
            skipped.extend(inner[1])
        elif source.name.endswith(".gz") and source.name[:-3] not in names:
            sources.append(unpacked(source, source.name[:-3], budget))
        elif packer := hidden_by(source.name):
            skipped.append(Skipped(source.name, f"it is packed with {packer}, which is not read"))
        else:
            sources.append(source)
    return tuple(sources), tuple(skipped)


def is_packed(name: str) -> bool:
    """Say by its name whether `expand` may look into a member."""
    return name.lower().endswith((*_ARCHIVES, ".gz"))


def _opener(source: Source, budget: Budget) -> Callable[[Source, Budget], Found] | None:
    """Say how to open what is an archive by its name and by what is in it; None for anything else."""
    lower = source.name.lower()
    if not lower.endswith(_ARCHIVES):
        return None
    head = next(iter(source.chunks()), b"")
    if lower.endswith(".zip"):
        # What does not begin as a zip file may still be one, behind a program that unpacks it.
        return _open_inner_zip if is_zip(head) or (head and ends_in_directory(spooled(source, budget))) else None
    if lower.endswith(".tar"):
        return _open_inner_tar if is_tar(head) else None
    return _open_packed_tar if is_gzip(head) else None


def _open_inner_zip(source: Source, budget: Budget) -> Found:
    return open_zip(spooled(source, budget), source.name, budget, folder=f"{source.name}/")


def _open_inner_tar(source: Source, budget: Budget) -> Found:
    return open_tar(spooled(source, budget), source.name, budget, folder=f"{source.name}/")


def _open_packed_tar(source: Source, budget: Budget) -> Found:
    return open_tar(
        spooled(unpacked(source, source.name, budget), budget), source.name, budget, folder=f"{source.name}/"
    )


def _open(source: Source, budget: Budget, *, depth: int) -> Found | None:
    """List what is in an archive; None if it is none."""
    try:
        opener = _opener(source, budget)  # may have to lay it down, too
        if opener is not None and depth > DEEPEST:
            return (), (Skipped(source.name, "it is an archive too deep inside of others"),)
        return opener(source, budget) if opener is not None else None
    except OSError as why:
        budget.hindered = True
        return (), (Skipped(source.name, f"it could not be unpacked: {why.strerror}"),)


def unpacked(source: Source, name: str, budget: Budget) -> Source:
    """Return the text of a gzip file as a source of its own."""
    return Source(name, partial(_unpacked_pieces, source, name, budget))


def _unpacked_pieces(source: Source, name: str, budget: Budget) -> Iterator[bytes]:
    done = 0
    packed = source.size_bytes or 1
    for piece in gunzipped(iter(source.chunks()), lambda why: budget.stop(name, why)):
        done += len(piece)
        if not budget.spend(name, done, packed):
            return
        yield piece


def spooled(source: Source, budget: Budget) -> Mapped:
    """Keep an archive that must be read from its end, or more than once, where `laid_down` does, within the budget."""
    return laid_down(itertools.takewhile(lambda chunk: budget.spool(source.name, len(chunk)), source.chunks()))


def laid_down(chunks: Iterable[bytes]) -> Mapped:
    """Keep bytes in an unnamed file: it vanishes with us."""
    import tempfile  # noqa: PLC0415 (start-up is felt, and a zip file needs none)

    with tempfile.TemporaryFile() as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.flush()
        return mapped(spool)


def mapped(file: BinaryIO) -> Mapped:
    """Map a file into memory; the map outlives the file's closing. An empty file cannot be mapped."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
