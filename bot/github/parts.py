"""A file while it grows, under a name of its own: it gets its real name when it is whole, or vanishes."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

SUFFIX: Final = ".part"


class Part:
    """Grows at its end (`append`) or anywhere within a size told before (`reserve`, `write_at`). All methods block."""

    def __init__(self, wanted: Path) -> None:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: two processes may share the folder.
        self._file = NamedTemporaryFile(dir=wanted.parent, prefix=f"{wanted.name}.", suffix=SUFFIX, delete=False)  # noqa: SIM115
        # Gone with the process, however that ends: so `is_abandoned` can tell.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.path = Path(self._file.name)
        self.size = 0
        self._hash = hashlib.sha256()

    def append(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._file.flush()  # another process may read what has arrived
        self._hash.update(chunk)
        self.size += len(chunk)

    def restart(self) -> None:
        """Begin anew. What lies there stays until it is written over: another process may be reading it."""
        self._file.seek(0)
        self.size, self._hash = 0, hashlib.sha256()

    def reserve(self, size: int) -> None:
        """Give the file its final size; what is not written then takes no room on the disk."""
        self._file.truncate(size)

    def write_at(self, place: int, chunk: bytes) -> None:
        """Write past all buffers, in any order and in any thread."""
        view = memoryview(chunk)
        while view:
            written = os.pwrite(self._file.fileno(), view, place)
            view, place = view[written:], place + written

    def read_at(self, place: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, place)

    def digest(self) -> str:
        """Return "sha256:<hex>" of what was appended."""
        return f"sha256:{self._hash.hexdigest()}"

    def finish(self, wanted: Path) -> None:
        """Give the file its name: from now on it is whole."""
        self._file.close()
        self.path.replace(wanted)

    def discard(self) -> None:
        """Leave nothing behind, unless it was finished."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def is_abandoned(path: Path) -> bool:
    """Say whether a part's process has died before it could finish or discard it."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or it has vanished
        return False
    return True


def digest_of(path: Path) -> str:
    """Return "sha256:<hex>" of a file."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
