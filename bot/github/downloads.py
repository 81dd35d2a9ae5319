"""One file from GitHub's storage to disk: streamed, bounded, resumed, verified, and without our token.

Source: GitHub's storage answers 400 to a request with Authorization; a signed URL lives about a minute, so that after
a break a new one is asked for; Azure takes Range, but nobody promises it, so a whole answer is taken as well.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import aiohttp
import structlog
from yarl import URL

from bot.github.hosts import DownloadHosts, ForbiddenHostError

log = structlog.get_logger()

MAX_HOPS: Final = 3
CHUNK_BYTES: Final = 256 * 1024
TRIES: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: The connection may not stall; the whole file may take its time.
TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)
LONGEST_S: Final = 30 * 60.0


class DownloadError(Exception):
    """The file cannot be had; the message completes the sentence "the file ..."."""


class _BrokenError(Exception):
    """This try failed; the next one may do better."""


@dataclass(frozen=True)
class Wanted:
    """What to download.

    `locate` asks GitHub for a fresh signed URL; `digest` is "sha256:<hex>" if GitHub told one.
    """

    path: Path
    locate: Callable[[], Awaitable[str]]
    max_bytes: int
    digest: str | None = None


class _Part:
    """The file while it grows; its methods block and are called in threads."""

    def __init__(self, wanted: Path) -> None:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: two processes may share the folder.
        self._file = NamedTemporaryFile(dir=wanted.parent, prefix=f"{wanted.name}.", suffix=".part", delete=False)  # noqa: SIM115
        self.path = Path(self._file.name)
        self.size = 0
        self.etag: str | None = None
        self.mismatches = 0
        self._hash = hashlib.sha256()

    def append(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.size, self.etag, self._hash = 0, None, hashlib.sha256()

    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"

    def finish(self, wanted: Path) -> None:
        """Give the file its name: from now on it is whole."""
        self._file.close()
        self.path.replace(wanted)

    def discard(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


class Downloader:
    """Downloads files, each with a few tries."""

    def __init__(self, session: aiohttp.ClientSession, hosts: DownloadHosts, *, retry_pause_s: float) -> None:
        """Take a session without default headers: they would travel to the storage."""
        self._session = session
        self._hosts = hosts
        self._retry_pause_s = retry_pause_s

    async def fetch(self, wanted: Wanted) -> None:
        """Put the file at `wanted.path`, whole or not at all.

        Raises:
            DownloadError: too large, too slow, another content than GitHub announced, or the storage failed.
            OSError: the disk.
            Whatever `wanted.locate` raises.
        """
        part = await asyncio.to_thread(_Part, wanted.path)
        try:
            async with asyncio.timeout(LONGEST_S) as deadline:
                await self._persist(wanted, part)
            await asyncio.to_thread(part.finish, wanted.path)
        except TimeoutError:
            if deadline.expired():
                raise DownloadError(f"took longer than {LONGEST_S / 60:.0f} minutes to download") from None
            raise
        finally:
            await asyncio.to_thread(part.discard)

    async def _persist(self, wanted: Wanted, part: _Part) -> None:
        """Try until the part is whole."""
        for tried in range(1, TRIES + 1):
            url = _parse(await wanted.locate())
            try:
                await self._stream(url, wanted, part)
            except _BrokenError as exc:
                log.info("download.broken", file=wanted.path.name, why=str(exc), bytes=part.size, tried=tried)
                if tried == TRIES:
                    raise DownloadError(f"could not be downloaded: {exc}") from exc
                await asyncio.sleep(self._retry_pause_s * 2.0 ** (tried - 1))
            except ForbiddenHostError as exc:
                raise DownloadError(f"was not downloaded: {exc}") from exc
            else:
                return

    async def _stream(self, url: URL, wanted: Wanted, part: _Part) -> None:
        """Bring the part from where it stands to its end."""
        try:
            response = await self._open(url, self._range(wanted, part))
            async with response:
                await self._accept(response, part)
                announced = response.content_length or 0
                if part.size + announced > wanted.max_bytes:
                    raise DownloadError(too_large(part.size + announced, wanted.max_bytes))
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    if part.size + len(chunk) > wanted.max_bytes:
                        raise DownloadError(too_large(None, wanted.max_bytes))
                    await asyncio.to_thread(part.append, chunk)
        except (aiohttp.ClientError, ConnectionError) as exc:
            raise _BrokenError(f"the connection broke ({type(exc).__name__})") from exc
        if wanted.digest is not None and wanted.digest.startswith("sha256:") and part.digest() != wanted.digest.lower():
            await asyncio.to_thread(part.restart)
            part.mismatches += 1
            if part.mismatches > 1:  # twice the same is no accident of the network
                raise DownloadError("is not what GitHub announced (SHA-256 differs), and was not read")
            raise _BrokenError("SHA-256 differs")

    def _range(self, wanted: Wanted, part: _Part) -> dict[str, str]:
        # `identity`: a length and an offset must mean bytes of the file, not of its compressed form.
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if part.size and (part.etag or wanted.digest):
            headers["Range"] = f"bytes={part.size}-"
            if part.etag:
                headers["If-Range"] = part.etag
        return headers

    async def _accept(self, response: aiohttp.ClientResponse, part: _Part) -> None:
        """Make the part fit the answer: the rest of it, or all of it from the start."""
        etag = response.headers.get("ETag")
        if response.status == 206:
            continues = response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")
            if continues and (part.etag is None or etag == part.etag):
                return
            await asyncio.to_thread(part.restart)
            raise _BrokenError("it changed while it was read")
        if response.status != 200:
            if response.status == 416:
                await asyncio.to_thread(part.restart)
            raise _BrokenError(f"the storage answered {response.status}")
        await asyncio.to_thread(part.restart)
        part.etag = etag if etag and not etag.startswith("W/") else None

    async def _open(self, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Follow redirects by hand: each host is checked."""
        for _ in range(MAX_HOPS):
            self._hosts.check(url)
            response = await self._session.get(url, headers=headers, allow_redirects=False, timeout=TIMEOUT)
            onward = response.headers.get("Location")
            if response.status not in REDIRECTS or onward is None:
                return response
            response.release()
            url = url.join(_parse(onward))
        raise DownloadError(f"could not be downloaded: more than {MAX_HOPS} redirects")


def _parse(text: str) -> URL:
    """Take the URL as it is: a signature covers its exact spelling."""
    try:
        return URL(text, encoded=True)
    except ValueError as exc:
        raise DownloadError("could not be downloaded: its address makes no sense") from exc


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
