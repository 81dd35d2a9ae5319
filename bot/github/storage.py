"""GitHub's storage: another host than the API, reached by signed URLs that soon expire, and never with our token.

Source: GitHub's storage answers 400 to a request with Authorization; a signed URL lives about a minute, so that after
a break a new one is asked for; Azure takes Range, but nobody promises it, so a whole answer is taken as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
from yarl import URL

from bot.github.calls import UNWELL_WAIT_S, UnreachableError
from bot.github.hosts import DownloadHosts, ForbiddenHostError
from bot.github.weather import THE_STORAGE, Weather

MAX_HOPS: Final = 3
CHUNK_BYTES: Final = 256 * 1024
#: How often one thing is tried: a whole file, or a range of one.
TRIES: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: The connection may not stall; the whole file may take its time.
TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)
#: There was no connection at all, which says nothing about the file.
UNREACHED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
#: So long work waits for a storage that cannot be reached, in seconds: its name may never be known here.
PATIENCE_S: Final = 3600.0
#: Asks GitHub for a fresh signed URL of one and the same file.
Locate = Callable[[], Awaitable[str]]


class DownloadError(Exception):
    """The file cannot be had; the message completes the sentence "the file ..."."""


class BrokenError(Exception):
    """This try failed; the next one may do better."""


class Storage:
    """Opens files by their signed URLs."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        hosts: DownloadHosts,
        *,
        retry_pause_s: float,
        weather: Weather | None = None,
    ) -> None:
        """Take a session without default headers: they would travel to the storage."""
        self._weather = weather
        self._session = session
        self._hosts = hosts
        self._retry_pause_s = retry_pause_s

    async def open(self, url: URL, *, part: str = "", unless_changed: str | None = None) -> aiohttp.ClientResponse:
        """Ask for a file or, by `part` ("bytes=0-9"), for a part of it; redirects are followed by hand.

        Args:
            unless_changed: the strong ETag that the file must still have for a part to be sent.
        Raises:
            DownloadError: a host that may not be asked, an address without sense, too many redirects.
            aiohttp.ClientError, ConnectionError, TimeoutError: the connection.
        """
        # `identity`: a length and an offset must mean bytes of the file, not of its compressed form.
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if part:
            headers["Range"] = part
        if part and unless_changed:
            headers["If-Range"] = unless_changed
        for _ in range(MAX_HOPS):
            try:
                self._hosts.check(url)
            except ForbiddenHostError as exc:
                raise DownloadError(f"was not downloaded: {exc}") from exc
            response = await self._get(url, headers)
            onward = response.headers.get("Location")
            if response.status not in REDIRECTS or onward is None:
                return response
            response.release()
            url = url.join(parse_url(onward))
        raise DownloadError(f"could not be downloaded: more than {MAX_HOPS} redirects")

    async def _get(self, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        try:
            response = await self._session.get(url, headers=headers, allow_redirects=False, timeout=TIMEOUT)
        except UNREACHED as exc:
            if self._weather is not None:
                self._weather.unreachable(exc, who=THE_STORAGE)
            raise
        if self._weather is not None:
            self._weather.reached(THE_STORAGE)
        return response

    def gave_up(self, why: BrokenError) -> Exception:
        """Return what the last try means: a storage that was reachable within the hour is worth waiting for.

        Beyond that a reader is told what there is without the file.
        """
        lasted_s = self._weather.lasted_s("unreachable", THE_STORAGE) if self._weather is not None else None
        if isinstance(why.__cause__, UNREACHED) and lasted_s is not None and lasted_s < PATIENCE_S:
            return UnreachableError(f"GitHub's storage cannot be reached: {why.__cause__}", after_s=UNWELL_WAIT_S)
        return DownloadError(f"could not be downloaded: {why}")

    async def pause(self, tried: int) -> None:
        """Wait after the first, second, ... try that failed."""
        await asyncio.sleep(self._retry_pause_s * 2.0 ** (tried - 1))


def parse_url(text: str) -> URL:
    """Take the URL as it is: a signature covers its exact spelling."""
    try:
        text.encode()  # bytes of a header that are no text come as halves of pairs
        url = URL(text, encoded=True)
        _ = url.host, url.port  # what is wrong with them shows only when they are asked for
    except ValueError as exc:
        raise DownloadError("could not be downloaded: its address makes no sense") from exc
    return url


def strong_etag(response: aiohttp.ClientResponse) -> str | None:
    """Return the ETag that tells whether the bytes are the same, if the answer has one."""
    etag = response.headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else None


def why_broken(exc: Exception) -> str:
    return f"the connection broke ({type(exc).__name__})"


def too_large(size_bytes: int | None, max_bytes: int) -> str:
    """Return the end of the sentence "the file ..."."""
    limit = f"the {readable_size(max_bytes)} that are read"
    return f"is larger than {limit}" if size_bytes is None else f"has {readable_size(size_bytes)}, more than {limit}"


def readable_size(size_bytes: float) -> str:
    """Return a size for people, in powers of 1024: "1.5 GiB"."""
    for unit in ("bytes", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} bytes" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"
