"""Parts of one file in the storage: resumed, with a new signed URL when the old one has expired, and never trusted.

A storage may answer a wish for a part with anything. What is not exactly the part that was asked for, of the very file
that was asked first, ends the reading in parts: the caller then takes the whole file, whose digest is known.

Source: RFC 9110, sections 13.1.5, 14.2, 14.4, 15.3.7.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog
from yarl import URL

from bot.github.storage import CHUNK_BYTES, TRIES, BrokenError, Locate, Storage, parse_url, strong_etag, why_broken

log = structlog.get_logger()

#: Answers to a signed URL that may have expired: the next one comes from GitHub.
EXPIRED: Final = frozenset({401, 403, 404, 410})
#: Answers of a storage that is busy or unwell.
UNWELL: Final = frozenset({408, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (?P<first>\d{1,19})-(?P<last>\d{1,19})/(?P<total>\d{1,19})")
#: Takes where in the file a piece belongs, and the piece.
Write = Callable[[int, bytes], Awaitable[None]]


@dataclass(frozen=True)
class Told:
    """The first and the last byte of a part, and how long the whole is."""

    first: int
    last: int
    total: int


def is_plain(response: aiohttp.ClientResponse) -> bool:
    """Say whether the bytes that come are those of the file, not packed once more on their way."""
    return response.headers.get("Content-Encoding", "identity") == "identity"


def told_part(response: aiohttp.ClientResponse) -> Told | None:
    """Return which part of the file an answer brings; None if it does not say, or could not be counted in bytes."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or not is_plain(response):
        return None
    told = Told(int(found["first"]), int(found["last"]), int(found["total"]))
    return told if told.first <= told.last < told.total else None


class RangesError(Exception):
    """The file cannot be had, or should not be read, in parts; the message says why."""


class Remote:
    """One file. `size_bytes` and its ETag are learnt from the first answer, and every other one must repeat them.

    `url` is the signed URL that was used last, None before the first.
    """

    def __init__(self, storage: Storage, locate: Locate) -> None:
        self._storage = storage
        self._locate = locate
        self.url: URL | None = None
        self._renewing = asyncio.Lock()
        self._etag: str | None = None
        self.size_bytes = 0
        self.spent_bytes = 0

    async def end(self, most_bytes: int) -> tuple[int, bytes]:
        """Return the last bytes of the file, at most so many, and where they begin; learn the file's size.

        Raises:
            RangesError: see there.
            DownloadError: a host that may not be asked.
            Whatever `locate` raises.
        """
        for tried in range(1, TRIES + 1):
            held = bytearray()
            try:
                async with await self._ask(f"bytes=-{most_bytes}", if_range=False) as response:
                    first, last = self._learn(response)
                    if last != self.size_bytes - 1 or last - first >= most_bytes:
                        raise RangesError("the storage sent another part than its end")
                    async for chunk in self._chunks(response, last - first + 1):
                        held += chunk
                return first, bytes(held)
            except BrokenError as exc:
                await self._endure(exc, tried)
        raise AssertionError("the last try raises")

    async def copy(self, begin: int, end: int, write: Write) -> None:
        """Pass the bytes from `begin` up to `end` on to `write`, each once; after a break it goes on where it broke.

        Raises:
            As `end` does, and what `write` raises.
        """
        for tried in range(1, TRIES + 1):
            try:
                async with await self._ask(f"bytes={begin}-{end - 1}", if_range=True) as response:
                    if self._learn(response) != (begin, end - 1):
                        raise RangesError("the storage sent another part than was asked for")
                    async for chunk in self._chunks(response, end - begin):
                        await write(begin, chunk)
                        begin += len(chunk)
            except BrokenError as exc:
                await self._endure(exc, tried)
            else:
                return

    async def _ask(self, part: str, *, if_range: bool) -> aiohttp.ClientResponse:
        """Return the answer with that part; a URL that has expired is renewed, once per request."""
        url = await self._fresh(None)
        for renewed in (False, True):
            try:
                response = await self._storage.open(url, part=part, unless_changed=self._etag if if_range else None)
            except (aiohttp.ClientError, ConnectionError) as exc:
                raise BrokenError(why_broken(exc)) from exc
            if response.status == 206:
                return response
            response.close()  # a whole file may stand behind an answer that nobody wants
            if response.status in UNWELL or (response.status in EXPIRED and renewed):
                raise BrokenError(f"the storage answered {response.status}")
            if response.status not in EXPIRED:
                raise RangesError(f"the storage answered {response.status} when asked for a part")
            url = await self._fresh(url)
        raise AssertionError("the second answer is judged like the first")

    async def _fresh(self, stale: URL | None) -> URL:
        """Return a URL other than `stale`; of many who find it stale at once, one asks GitHub."""
        async with self._renewing:
            if self.url is None or self.url is stale:
                self.url = parse_url(await self._locate())
            return self.url

    def _learn(self, response: aiohttp.ClientResponse) -> tuple[int, int]:
        """Return the first and the last byte of the part, if it is one of our file."""
        told = told_part(response)
        if told is None:  # several parts in one answer, for example
            raise RangesError("the storage does not say which part it sends")
        etag = response.headers.get("ETag")
        if not self.size_bytes:
            self.size_bytes, self._etag = told.total, strong_etag(response)
        changed = told.total != self.size_bytes or (self._etag is not None and etag is not None and etag != self._etag)
        if changed:
            raise RangesError("the file changed while it was read")
        return told.first, told.last

    async def _chunks(self, response: aiohttp.ClientResponse, expected: int) -> AsyncIterator[bytes]:
        """Yield the body, which must be exactly as long as its header says."""
        left = expected
        try:
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                self.spent_bytes += len(chunk)
                left -= len(chunk)
                if left < 0:
                    raise RangesError("the storage sent more than was asked for")
                yield chunk
        except (aiohttp.ClientError, ConnectionError) as exc:
            if left:  # else all is there, and there is nothing to go on with
                raise BrokenError(why_broken(exc)) from exc
        if left:
            raise BrokenError("the part ended early")

    async def _endure(self, exc: BrokenError, tried: int) -> None:
        log.info("download.range_broken", why=str(exc), tried=tried)
        if tried == TRIES:
            raise RangesError(str(exc)) from exc
        await self._storage.pause(tried)
