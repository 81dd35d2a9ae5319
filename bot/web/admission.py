"""How much may be in hand at once: more is turned away with 503 and Retry-After before it takes memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Deliveries being read, parsed or stored; GitHub opens far fewer connections, and each of them waits in vain.
MOST_REQUESTS = 256
#: A body up to this size takes room by its number alone: nearly every delivery has 10 to 40 KB. So nobody shuts out
#: these by announcing large ones, which a stranger can do as well: what is signed is known when all of it has come.
SMALL_BYTES = 256 * 1024
#: Bytes of larger bodies being read or parsed: one delivery may have 25 MB, and parsed it takes a few times that.
MOST_BYTES = 64 * 1024 * 1024


class FullError(Exception):
    """There is no room for another delivery now."""


class Admission:
    """Counts what is in hand; one for all requests of a process."""

    def __init__(
        self, *, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES, small_bytes: int = SMALL_BYTES
    ) -> None:
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._small_bytes = small_bytes
        self.requests = 0
        self.bytes = 0

    @contextmanager
    def enter(self, size_bytes: int) -> Iterator[None]:
        """Hold room for one body, as large as its header says or as it may become.

        Raises:
            FullError: there is none. One large body alone is always let in.
        """
        large_bytes = size_bytes if size_bytes > self._small_bytes else 0
        no_room = large_bytes and self.bytes and self.bytes + large_bytes > self._most_bytes
        if self.requests >= self._most_requests or no_room:
            raise FullError
        self.requests += 1
        self.bytes += large_bytes
        try:
            yield
        finally:
            self.requests -= 1
            self.bytes -= large_bytes
