"""One file from GitHub's storage to disk: streamed, bounded, resumed, verified, and without our token.

Of a large archive only the members that are needed are fetched, where that is less work (`bot.github.members`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import structlog
from yarl import URL

from bot.github.ahead import Ahead, ReadAhead, outgrown
from bot.github.members import Members, Needs
from bot.github.parts import Part, begun, to_its_end
from bot.github.ranges import RangesError, Remote, is_plain, told_part
from bot.github.storage import (
    CHUNK_BYTES,
    TRIES,
    BrokenError,
    DownloadError,
    Locate,
    Storage,
    parse_url,
    strong_etag,
    too_large,
    why_broken,
)

log = structlog.get_logger()

LONGEST_S: Final = 30 * 60.0
#: What a try must have brought to count as one that went well until it broke.
PROGRESS_BYTES: Final = 8 * 1024**2
#: Below this size one request for the whole file is quicker than the directory and the members one after the other.
RANGES_FROM_BYTES: Final = 10_000_000


@dataclass(frozen=True)
class Wanted:
    """What to download.

    `locate` asks GitHub for a fresh signed URL; `digest` is "sha256:<hex>" if GitHub told one, `size_bytes` what it
    told of the size. With `needs` the file is a zip file that may be fetched in part: it then lies at `partial_path`,
    as long as the whole, and holds nothing where there are members that `needs` does not name; `partial_digest` is what
    to know that part by, as its bytes prove no digest of the whole.
    """

    path: Path
    locate: Locate
    max_bytes: int
    digest: str | None = None
    size_bytes: int = 0
    partial_path: Path | None = None
    needs: Needs | None = None
    read_ahead: ReadAhead | None = None
    partial_digest: str = ""

    def forbids(self, digest: str) -> bool:
        """Say whether the whole cannot have this digest ("sha256:<hex>"), after what was announced."""
        return self._announced() not in ("", digest)

    def proves(self, digest: str) -> bool:
        """Say whether this is the digest of the whole that was announced."""
        return self._announced() == digest

    def _announced(self) -> str:
        announced = (self.digest or "").lower()
        return announced if announced.startswith("sha256:") else ""


@dataclass(frozen=True)
class Got:
    """Where the file lies, and the digest of the whole as it came, or what to know the part by."""

    path: Path
    digest: str
    said: tuple[bytes, ...] = ()  # what was read ahead of it


@dataclass
class _Start:
    """What is known when the whole file begins to be fetched."""

    ahead: Ahead
    url: URL | None = None
    ending: tuple[int, bytes] | None = None


class _Whole(Part):
    """A file that is fetched from its beginning to its end, which may lie there from the start to be read ahead."""

    def __init__(self, wanted: Path, start: _Start) -> None:
        super().__init__(wanted)
        self.etag: str | None = None
        self.mismatches = 0
        self.ahead = start.ahead
        self._ending = start.ending

    def lay_ending(self) -> None:
        """Put what is known of the file's end in its place, so that what arrives can be read."""
        if self._ending is not None:
            at, ending = self._ending
            self.reserve(at + len(ending))
            self.write_at(at, ending)

    def is_as_told(self) -> bool:
        """Say whether the whole that came ends with the directory by which it was read ahead, and fits it."""
        if self._ending is None:
            return False
        at, ending = self._ending
        same = self.size == at + len(ending) and self.read_at(at, len(ending)) == ending
        return same and not outgrown(self.path, self.ahead.extents)

    def restart(self) -> None:
        if self.size:
            self.ahead.drop()
        super().restart()
        self.etag = None

    def finish(self, wanted: Path) -> None:
        self._file.truncate(self.size)
        super().finish(wanted)


class Downloader:
    """Downloads files, each with a few tries."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def fetch(self, wanted: Wanted) -> Got:
        """Put the file at `wanted.path`, or what is needed of it at `wanted.partial_path`; entirely or not at all.

        Raises:
            DownloadError: too large, too slow, another content than GitHub announced, or the storage failed.
            UnreachableError: there is no way to the storage now.
            OSError: the disk.
            Whatever `wanted.locate` raises.
        """
        try:
            async with asyncio.timeout(LONGEST_S) as deadline:
                start = _Start(Ahead(wanted.read_ahead))
                try:
                    return await self._fetch_part(wanted, start) or await self._fetch_whole(wanted, start)
                finally:
                    start.ahead.drop()
        except TimeoutError:
            if deadline.expired():
                raise DownloadError(f"took longer than {LONGEST_S / 60:.0f} minutes to download") from None
            raise

    async def _fetch_part(self, wanted: Wanted, start: _Start) -> Got | None:
        """Fetch the members that are needed; None if the whole file is less work, or the safer way."""
        if wanted.needs is None or wanted.partial_path is None or wanted.size_bytes < RANGES_FROM_BYTES:
            return None
        partial_path = wanted.partial_path
        async with begun(lambda: Part(partial_path)) as part:
            remote = Remote(self._storage, wanted.locate)
            members = Members(remote, part, wanted.needs, start.ahead)
            try:
                fetched = await members.fetch(size_bytes=wanted.size_bytes)
                await to_its_end(part.finish, partial_path)
            except RangesError as exc:
                log.info("download.whole", file=wanted.path.name, why=str(exc))
                start.ahead.start_over()
                start.url, start.ending = remote.url, members.ending
                return None
        log.info("download.part", file=wanted.path.name, bytes=fetched.spent_bytes, of_bytes=wanted.size_bytes)
        return Got(partial_path, wanted.partial_digest, fetched.said)

    async def _fetch_whole(self, wanted: Wanted, start: _Start) -> Got:
        async with begun(lambda: _Whole(wanted.path, start)) as part:
            await to_its_end(part.lay_ending)
            await self._persist(wanted, part, start.url)
            said = (await part.ahead.finish()).said
            if said and not await to_its_end(part.is_as_told):
                said = ()
            await to_its_end(part.finish, wanted.path)
        return Got(wanted.path, part.digest(), said)

    async def _persist(self, wanted: Wanted, part: _Whole, url: URL | None) -> None:
        """Try until the part is whole, with a new signed URL each time; the first time with `url` if there is one.

        A try that came much further than all before begins the count anew: a long file may break more often.
        """
        tried = furthest = 0
        while True:
            tried += 1
            try:
                await self._stream(url or parse_url(await wanted.locate()), wanted, part)
            except BrokenError as exc:
                if part.size >= furthest + PROGRESS_BYTES:
                    tried, furthest = 1, part.size
                log.info("download.broken", file=wanted.path.name, why=str(exc), bytes=part.size, tried=tried)
                if tried == TRIES:
                    raise self._storage.gave_up(exc) from exc
                await self._storage.pause(tried)
                url = None
            else:
                return

    async def _stream(self, url: URL, wanted: Wanted, part: _Whole) -> None:
        """Bring the part from where it stands to its end."""
        resumes = part.size and (part.etag or wanted.digest)
        try:
            response = await self._storage.open(
                url, part=f"bytes={part.size}-" if resumes else "", unless_changed=part.etag
            )
            async with response:
                whole_bytes = self._accept(response, part)
                announced = response.content_length or 0
                if part.size + announced > wanted.max_bytes:
                    raise DownloadError(too_large(part.size + announced, wanted.max_bytes))
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    if part.size + len(chunk) > wanted.max_bytes:
                        raise DownloadError(too_large(None, wanted.max_bytes))
                    await to_its_end(part.append, chunk)
                    part.ahead.arrived(part.path, part.size - len(chunk), part.size)
                if whole_bytes is not None and part.size != whole_bytes:
                    raise _misfit(part, whole_bytes)
        except (aiohttp.ClientError, ConnectionError) as exc:
            if not wanted.proves(part.digest()):  # it may have broken behind the last byte
                raise BrokenError(why_broken(exc)) from exc
        if wanted.forbids(part.digest()):
            part.restart()
            part.mismatches += 1
            if part.mismatches > 1:  # twice the same is no accident of the network
                raise DownloadError("is not what GitHub announced (SHA-256 differs), and was not read")
            raise BrokenError("SHA-256 differs")

    def _accept(self, response: aiohttp.ClientResponse, part: _Whole) -> int | None:
        """Make the part fit the answer: the rest of it, or all of it from the start.

        Returns:
            How long the whole is, if the answer is to be held to it; else its own header says how long it is.
        """
        if response.status == 206:
            told = told_part(response)
            same = part.etag is None or response.headers.get("ETag") == part.etag
            if told is not None and told.first == part.size and same:
                return told.total
            part.restart()
            raise BrokenError("it changed while it was read")
        if response.status != 200:
            if response.status == 416:
                part.restart()
            raise BrokenError(f"the storage answered {response.status}")
        part.restart()
        # Of what comes packed once more, the rest would be counted in other bytes than those that lie here.
        part.etag = strong_etag(response) if is_plain(response) else None
        return None


def _misfit(part: _Whole, whole_bytes: int) -> BrokenError:
    """Keep what came if only the rest is missing, for the next try to go on with."""
    if part.size > whole_bytes:
        part.restart()
        return BrokenError("the storage sent more than it said")
    return BrokenError("the part ended early")
