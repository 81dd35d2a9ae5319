"""The files of a run for the analysis (`handlers.context.Files`), or in words why one cannot be had."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import structlog

from analyzers.reading.layout import is_read
from bot.archives.nested import is_packed
from bot.github.client import Installation
from bot.github.downloads import Downloader, Wanted
from bot.github.repository import REPO, split_name
from bot.github.shelf import Shelf
from bot.github.storage import DownloadError, too_large
from bot.release import analysis_key
from handlers.context import Artifact, Fetched, Job, RefusedError, Repo

log = structlog.get_logger()

#: A log appears a little after its job has ended.
LOG_LAG = timedelta(minutes=2)
LOG_TRIES = 4
JOB_LOG_NAME = "job.log"


class Reader(Protocol):
    """Reads archives that are still arriving, and keeps what they said for whoever asks for their repository."""

    def read_ahead(self, path: Path, names: frozenset[str]) -> Awaitable[tuple[bytes, int] | None] | None: ...
    def keep_ahead(self, repo_id: int, digest: str, said: tuple[bytes, ...]) -> None: ...


@dataclass(frozen=True)
class FilesDesk:
    """What all repositories' files share."""

    shelf: Shelf
    downloader: Downloader
    clock: Callable[[], datetime]
    max_artifact_bytes: int
    max_log_bytes: int
    log_pause_s: float
    reader: Reader | None = None


class RepoFiles:
    """The files of one repository's runs. `why` completes the sentence "<name> ..."."""

    def __init__(self, installation: Installation, repo: Repo, desk: FilesDesk) -> None:
        self._installation = installation
        self._repo = repo
        self._desk = desk
        self._names = dict(zip(("owner", "repo"), split_name(repo.full_name), strict=True))

    async def job_log(self, job: Job) -> Fetched:
        """Download the job's log; it exists once the job is over, also while the run goes on."""
        path = self._desk.shelf.place(self._repo, job.run_id, f"job-{job.id}.log")

        async def locate() -> str:
            return await self._locate_log(job)

        wanted = Wanted(path, locate, self._desk.max_log_bytes)
        missing = {404: _why_no_log(job), 410: "has expired: GitHub keeps logs for a limited time only"}
        return await self._desk.shelf.share(path, lambda: self._fetch(JOB_LOG_NAME, wanted, missing))

    async def artifact(self, artifact: Artifact) -> Fetched:
        """Download the artifact's zip file, unless it is known to be gone or too large."""
        nothing = Fetched(name=artifact.name, path=None)
        expired = _expired(artifact)
        if artifact.expired:
            return replace(nothing, why=expired)
        if artifact.size_bytes > self._desk.max_artifact_bytes:
            return replace(nothing, why=too_large(artifact.size_bytes, self._desk.max_artifact_bytes))
        path = self._desk.shelf.place(self._repo, artifact.run_id, f"artifact-{artifact.id}.zip")
        partial = path.with_name(f"artifact-{artifact.id}-{await asyncio.to_thread(_kind_of_part, artifact)}.zip")

        async def locate() -> str:
            template = REPO + "/actions/artifacts/{artifact_id}/{archive_format}"
            return await self._installation.location(
                self._repo, template, **self._names, artifact_id=artifact.id, archive_format="zip"
            )

        wanted = Wanted(
            path,
            locate,
            self._desk.max_artifact_bytes,
            digest=artifact.digest,
            size_bytes=artifact.size_bytes,
            partial_path=partial,
            # Who uploads an artifact announces its digest, and a part does not prove it: by that alone one pull request
            # could pass its logs for those of another.
            partial_digest=f"part:{partial.name}",
            needs=is_needed,
            read_ahead=self._desk.reader.read_ahead if self._desk.reader else None,
        )
        missing = {404: "no longer exists on GitHub", 410: expired}
        return await self._desk.shelf.share(path, lambda: self._fetch(artifact.name, wanted, missing))

    async def tail(self, fetched: Fetched, *, max_bytes: int = 262_144) -> str:
        """Return the end of a file as text; "" if there is no file."""
        if fetched.path is None:
            return ""
        try:
            ending = await asyncio.to_thread(_read_end, Path(fetched.path), max_bytes)
        except FileNotFoundError:  # thrown away since it was fetched
            return ""
        return ending.decode("utf-8", errors="replace")

    async def _fetch(self, name: str, wanted: Wanted, missing: dict[int, str]) -> Fetched:
        """Download once; a final failure becomes words, anything that may pass is raised (the work is queued again)."""
        nothing = Fetched(name=name, path=None)
        try:
            path, digest = await self._get(wanted)
        except RefusedError as exc:
            why = missing.get(exc.status, f"was refused by GitHub: {exc.message}")
        except DownloadError as exc:
            why = str(exc)
        except OSError as exc:
            log.exception("files.disk", file=wanted.path.name)
            why = f"could not be stored: {exc.strerror or exc}"
        else:
            return replace(nothing, path=str(path), digest=digest)
        log.info("files.not_fetched", file=wanted.path.name, why=why)
        return replace(nothing, why=why)

    async def _get(self, wanted: Wanted) -> tuple[Path, str]:
        """Return where the file lies, and the digest of what it is; download it if it is not there."""
        shelf = self._desk.shelf
        if await shelf.find(wanted.path) and not wanted.forbids(digest := await shelf.digest(wanted.path)):
            return wanted.path, digest
        if wanted.partial_path is not None and await shelf.find(wanted.partial_path):
            return wanted.partial_path, wanted.partial_digest
        async with shelf.room_for(wanted.size_bytes):
            got = await self._desk.downloader.fetch(wanted)
        shelf.note_digest(got.path, got.digest)
        if self._desk.reader is not None:
            self._desk.reader.keep_ahead(self._repo.id, got.digest, got.said)
        return got.path, got.digest

    async def _locate_log(self, job: Job) -> str:
        """Ask where the log lies; a 404 means "not yet" only while or just after the job runs."""
        for pause in range(LOG_TRIES):
            try:
                return await self._ask_for_log(job)
            except RefusedError as exc:
                if exc.status != 404 or not self._may_still_come(job):
                    raise
                await asyncio.sleep(self._desk.log_pause_s * 2.0**pause)
        return await self._ask_for_log(job)

    async def _ask_for_log(self, job: Job) -> str:
        template = REPO + "/actions/jobs/{job_id}/logs"
        return await self._installation.location(self._repo, template, **self._names, job_id=job.id)

    def _may_still_come(self, job: Job) -> bool:
        return job.completed_at is None or self._desk.clock() - job.completed_at < LOG_LAG


def is_needed(name: str) -> bool:
    """Say whether the analysis looks into a member of this name."""
    return is_read(name) or is_packed(name)


def _kind_of_part(artifact: Artifact) -> str:
    """Return a word that differs where another part of it is needed, as in another release, or GitHub has another."""
    return hashlib.sha256(f"{analysis_key()} {artifact.size_bytes} {artifact.digest}".encode()).hexdigest()[:12]


def _expired(artifact: Artifact) -> str:
    if artifact.expires_at is None:
        return "has expired: GitHub keeps artifacts for a limited time only"
    return f"expired on {artifact.expires_at:%Y-%m-%d}"


def _why_no_log(job: Job) -> str:
    if job.status != "completed":
        return "does not exist yet: the job is not over"
    return "does not exist on GitHub: the job never wrote one (cancelled, or its runner was lost), or it was deleted"


def _read_end(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - max_bytes))
        return file.read(max_bytes)
