"""The folder of downloaded files: where each lies, one download for all who ask, old ones thrown away."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
from cachetools import LRUCache

from bot.github.parts import SUFFIX, digest_of, is_abandoned
from handlers.context import Fetched, RateLimitedError, Repo

log = structlog.get_logger()

#: A file that was asked for so recently may be in somebody's hands, in seconds.
IN_USE_S = 30 * 60
#: How often the folder is looked through at the most, in seconds.
COLLECT_EVERY_S = 600
#: A part that is younger may have been made just now, and not be locked yet.
ABANDONED_AFTER_S = 60
DIGESTS_KEPT = 4096
#: How long it is relied on how much lies in the folder; what was let in meanwhile is added.
MEASURED_S = 5.0
#: Files leave the folder as their jobs are done with: work that finds no room comes again after this time.
NO_ROOM_WAIT_S = 300.0


@dataclass(frozen=True)
class Room:
    """How much may lie in the folder, and how long."""

    max_bytes: int = 20 * 1024**3
    max_age_s: float = 24 * 3600


def files_folder(data_dir: Path) -> Path:
    return data_dir / "files"


class Shelf:
    """Files of runs, under `<folder>/<repository id>/<run id>/`: names are made of numbers only.

    What was found in them lies beside them (`bot.answers`) and is collected with them.
    """

    def __init__(self, folder: Path, room: Room) -> None:
        self._folder = folder
        self._room = room
        self._running: dict[Path, asyncio.Task[Fetched]] = {}
        self._collected_at = 0.0
        self._taken_bytes = 0
        self._coming_bytes = 0
        self._measured_at = -MEASURED_S
        self._measuring = asyncio.Lock()
        self._digests: LRUCache[Path, str] = LRUCache(DIGESTS_KEPT)

    def place(self, repo: Repo, run_id: int, name: str) -> Path:
        return self._folder / str(int(repo.id)) / str(int(run_id)) / name

    async def find(self, path: Path) -> bool:
        """Say whether this file is there; it counts as used now."""
        return await asyncio.to_thread(mark_used, path)

    def note_digest(self, path: Path, digest: str) -> None:
        """Keep in mind what was learnt when the file came; files are never changed in place."""
        self._digests[path] = digest

    async def digest(self, path: Path) -> str:
        """Return the digest of a file that lies here; one that an earlier process fetched is read for it."""
        if path not in self._digests:
            self._digests[path] = await asyncio.to_thread(digest_of, path)
        return self._digests[path]

    async def share(self, path: Path, fetch: Callable[[], Coroutine[Any, Any, Fetched]]) -> Fetched:
        """Run `fetch` for this path, or join the one that is running."""
        running = self._running.get(path)
        if running is None:
            await self._tidy()
            # Looked at again: another caller may have started while this one waited.
            running = self._running.get(path) or self._start(path, fetch)
        # Shielded: whoever gives up must not end the download of the others.
        return await asyncio.shield(running)

    def _start(self, path: Path, fetch: Callable[[], Coroutine[Any, Any, Fetched]]) -> asyncio.Task[Fetched]:
        task = asyncio.create_task(fetch())
        self._running[path] = task
        task.add_done_callback(lambda done: self._end(path, done))
        return task

    def _end(self, path: Path, done: asyncio.Task[Fetched]) -> None:
        del self._running[path]
        # Whoever waits gets the error too; but all may have given up by now.
        if not done.cancelled() and (error := done.exception()) is not None:
            log.info("files.failed", file=path.name, why=str(error))

    @asynccontextmanager
    async def room_for(self, size_bytes: int) -> AsyncIterator[None]:
        """Keep room for a file that is about to be added, throwing away what may be.

        Raises:
            RateLimitedError: all that lies there may be in use. An empty folder takes any file.
        """
        if not await self._fits(size_bytes):
            await self.collect(spare_bytes=self._coming_bytes + size_bytes)
            self._measured_at = -MEASURED_S
            if not await self._fits(size_bytes):
                log.warning("files.no_room", taken_bytes=self._taken_bytes, wanted_bytes=size_bytes)
                raise RateLimitedError("the folder of downloads is full", after_s=NO_ROOM_WAIT_S)
        self._coming_bytes += size_bytes
        try:
            yield
        finally:
            self._coming_bytes -= size_bytes
            self._taken_bytes += size_bytes  # until it is measured again

    async def _fits(self, size_bytes: int) -> bool:
        async with self._measuring:  # whoever comes meanwhile must not go by what was there long ago, or by nothing
            now = asyncio.get_running_loop().time()
            if now - self._measured_at >= MEASURED_S:
                self._taken_bytes = await asyncio.to_thread(taken, self._folder)
                self._measured_at = now
        there = self._taken_bytes + self._coming_bytes
        return not there or there + size_bytes <= self._room.max_bytes

    async def _tidy(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._collected_at >= COLLECT_EVERY_S or not self._collected_at:
            self._collected_at = now
            await self.collect()

    async def collect(self, *, spare_bytes: int = 0) -> int:
        """Throw away what is too old, or too much beside what is to come; return the bytes that were freed.

        A disk that refuses is noted.
        """
        room = replace(self._room, max_bytes=self._room.max_bytes - spare_bytes)
        try:
            freed = await asyncio.to_thread(collect, self._folder, room, now_s=time.time())
        except OSError:
            log.exception("files.not_collected")
            return 0
        if freed:
            log.info("files.collected", freed_bytes=freed)
        return freed

    async def close(self) -> None:
        """End the downloads that are running."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def collect(folder: Path, room: Room, *, now_s: float) -> int:
    """Delete files that are too old, then the oldest until the rest fits, but none that may be in use.

    What a process that died has left of a download is deleted at once.

    Args:
        now_s: seconds since 1970, to be compared with the files' time of last use.
    Returns:
        How many bytes were freed.
    """
    files = sorted(_files(folder), key=lambda file: file[0])  # oldest first
    total = sum(size for _, size, _ in files)
    freed = 0
    for used_s, size, path in files:
        age_s = now_s - used_s
        if path.suffix == SUFFIX:
            keeps = age_s < ABANDONED_AFTER_S or not is_abandoned(path)
        else:
            keeps = age_s < IN_USE_S or (age_s <= room.max_age_s and total - freed <= room.max_bytes)
        if not keeps and _delete(path, used_s):
            freed += size
    _remove_empty(folder)
    return freed


def taken(folder: Path) -> int:
    """Return how many bytes lie in the folder, downloads that are under way among them."""
    return sum(size for _, size, _ in _files(folder))


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    found = []
    for path in (file for repo in _listed(folder) for run in _listed(repo) for file in _listed(run)):
        try:
            facts = path.lstat()
        except FileNotFoundError:  # another process collects too
            continue
        # What was fetched of an archive in parts has holes that take no room.
        found.append((facts.st_mtime, min(facts.st_size, facts.st_blocks * 512), path))
    return found


def _listed(folder: Path) -> list[Path]:
    """List a folder; what is none, is another user's or has been taken away holds nothing."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _delete(path: Path, used_s: float) -> bool:
    """Delete a file, unless somebody has used it since it was looked at; say whether it is gone."""
    try:
        if path.lstat().st_mtime != used_s:
            return False
        path.unlink()
    except FileNotFoundError:  # another process collects too
        return True
    except OSError as exc:  # one that cannot go must not keep all others
        log.warning("files.not_collected", file=path.name, why=exc.strerror)
        return False
    return True


def _remove_empty(folder: Path) -> None:
    repos = _listed(folder)
    for path in (*(run for repo in repos for run in _listed(repo)), *repos):
        if path.is_dir() and not _listed(path):
            try:
                path.rmdir()
            except OSError:  # a download has just begun in it
                log.debug("files.folder_in_use", folder=path.name)


def mark_used(path: Path) -> bool:
    """Say whether the file is there, and make it count as used now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
