"""How much may be in hand at once: more is turned away with 503 and Retry-After before it takes memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Deliveries being read, parsed or stored; GitHub opens far fewer connections, and each of them waits in vain.
MOST_REQUESTS = 256
#: Bytes of bodies being read or parsed: one delivery may have 25 MB, and parsed it takes a few times that.
MOST_BYTES = 64 * 1024 * 1024


class FullError(Exception):
    """There is no room for another delivery now."""


class Admission:
    """Counts what is in hand; one for all requests of a process."""

    def __init__(self, *, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES) -> None:
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self.requests = 0
        self.bytes = 0

    @contextmanager
    def enter(self, size_bytes: int) -> Iterator[None]:
        """Hold room for one body, as large as its header says or as it may become.

        Raises:
            FullError: there is none. A single body is always let in.
        """
        full = self.requests >= self._most_requests or self.bytes + size_bytes > self._most_bytes
        if full and self.requests:
            raise FullError
        self.requests += 1
        self.bytes += size_bytes
        try:
            yield
        finally:
            self.requests -= 1
            self.bytes -= size_bytes
