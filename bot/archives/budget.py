"""How much may be read of one bundle, and what was read of it."""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections.abc import Callable, Mapping

from analyzers.records import dataclass, field

#: Bytes come out of an archive in pieces of at most this size: they stay in the processor's cache, and threads seldom
#: wait for each other's turn.
PIECE = 512 * 1024
#: What is inflated is read in pieces of this size: they come to several times as much.
PACKED_PIECE = 192 * 1024
#: As `PIECE`, of a file as it lies there: nothing is inflated beside it.
FILE_PIECE = 1024 * 1024


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
    #: What archives inside of others may take on the disk, all of one bundle together, while it is read.
    spool_bytes: int = 2 * 1024**3


@dataclass
class Budget:
    """What has been read of each member of one bundle, and what went wrong. A second reading is not counted twice.

    Members may be read in several threads at once.
    """

    limits: Limits = field(default_factory=Limits)
    read: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    total: int = 0
    spooled: int = 0
    watch: Callable[[Budget], None] | None = None  # told now and then, in any thread, to show progress
    cancelled: bool = False
    hindered: bool = False  # by the disk of this machine: another time the same bundle may say more
    _lock: LockType = field(default_factory=allocate_lock)  # as `threading.Lock`, which loads more

    def spend(self, name: str, done: int, packed: int) -> bool:
        """Book that `done` bytes of a member came out of `packed` bytes; False if reading must stop here."""
        with self._lock:
            before = self.read.get(name, 0)
            if done > before:
                self.read[name] = done
                self.total += done - before
        if self.watch is not None:
            self.watch(self)
        limits = self.limits
        if self.cancelled:
            return self.stop(name, "reading was given up")
        if done > limits.file_bytes:
            return self.stop(name, f"only its first {limits.file_bytes // 1024**2} MB were read")
        if self.total > limits.total_bytes:
            return self.stop(name, f"reading stopped here: {limits.total_bytes // 1024**2} MB were unpacked in all")
        if done > limits.ratio_from_bytes and done > limits.ratio * max(packed, 1):
            return self.stop(name, f"reading stopped: it grows more than {limits.ratio} times, as no log does")
        return True

    def spool(self, name: str, size: int) -> bool:
        """Book that `size` bytes of an archive are about to be laid on the disk; False if there is no more room."""
        with self._lock:
            self.spooled += size
        if self.spooled > self.limits.spool_bytes:
            limit = self.limits.spool_bytes // 1024**2
            return self.stop(name, f"it was not unpacked to its end: {limit} MB of packed archives are read in all")
        return True

    def stop(self, name: str, why: str) -> bool:
        """Note why a member could not be read to its end."""
        self.problems.setdefault(name, why)
        return False

    def take_over(self, read: Mapping[str, int], problems: Mapping[str, str]) -> None:
        """Book what was read, and what went wrong, when the same bundle was read before."""
        self.read |= read
        self.problems = {**problems, **self.problems}
        self.total = sum(self.read.values())

    def cancel(self) -> None:
        """Let all reading that is under way end at its next piece."""
        self.cancelled = True
