"""A file while it grows, under a name of its own: it gets its real name when it is whole, or vanishes."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final, TypeVar

SUFFIX: Final = ".part"
#: How often a folder is made that others take away because it is empty.
FOLDER_TRIES: Final = 10
Result = TypeVar("Result")
Growing = TypeVar("Growing", bound="Part")


class Part:
    """Grows at its end (`append`) or anywhere within a size told before (`reserve`, `write_at`).

    All methods that touch the disk block.
    """

    def __init__(self, wanted: Path) -> None:
        self._file = _new_file(wanted)
        self.path = Path(self._file.name)
        self.size = 0
        self._hash = hashlib.sha256()
        try:
            # Gone with the process, however that ends: so `is_abandoned` can tell.
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            self.discard()
            raise

    def append(self, chunk: bytes) -> None:
        self.write_at(self.size, chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    def restart(self) -> None:
        """Begin anew. What lies there stays until it is written over: another process may be reading it."""
        self.size, self._hash = 0, hashlib.sha256()

    def reserve(self, size: int) -> None:
        """Give the file its final size; what is not written then takes no room on the disk."""
        self._file.truncate(size)

    def write_at(self, place: int, chunk: bytes) -> None:
        """Write, in any order and in any thread; there are no buffers: another process may read what has arrived."""
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
        # The lock goes with the last descriptor: without it, and without its name, it would pass for abandoned.
        held = os.dup(self._file.fileno())
        try:
            self._file.close()
            self.path.replace(wanted)
        finally:
            os.close(held)

    def discard(self) -> None:
        """Leave nothing behind, unless it was finished."""
        try:
            self._file.close()
        finally:
            self.path.unlink(missing_ok=True)


def _new_file(wanted: Path) -> IO[bytes]:
    """Make a file beside `wanted`, with a name of its own: two processes may share the folder.

    Nothing is buffered: what a full disk did not take would be written again, to no effect, before the file can close.
    """
    for tried in range(1, FOLDER_TRIES + 1):
        try:
            wanted.parent.mkdir(parents=True, exist_ok=True)
            file = NamedTemporaryFile(  # noqa: SIM115
                buffering=0, dir=wanted.parent, prefix=f"{wanted.name}.", suffix=SUFFIX, delete=False
            )
        except (FileNotFoundError, FileExistsError):  # the folder was still empty, and taken away, before or after
            if tried == FOLDER_TRIES:
                raise
        else:
            return file
    raise AssertionError("the last try raises")


@asynccontextmanager
async def begun(make: Callable[[], Growing]) -> AsyncIterator[Growing]:
    """Make a part, and discard it at the end, whoever is cancelled when."""
    made: list[Growing] = []
    try:
        await to_its_end(lambda: made.append(make()))
        yield made[0]
    finally:
        for part in made:
            await to_its_end(part.discard)


async def to_its_end(work: Callable[..., Result], *given: object) -> Result:
    """Do something short in a thread; who is cancelled meanwhile hears of it when it is over.

    A thread cannot be cancelled: left alone, it would write on, to a file that is being closed or to whichever then
    gets its number, and work that still waits for a thread would never be done.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work, *given)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:  # once more: it ends soon, and then this is told
                continue
        running.exception()
        raise


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
