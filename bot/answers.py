"""What was found before: diagnoses by what was asked, in memory and beside the downloads, never across repositories.

A question is the job's name and the digests of its files, so that files fetched anew, or by an earlier process, are
known; and the release's analysis, so that a new one answers anew. The files lie where the downloads lie and are thrown
away with them, by age and size.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from cachetools import LRUCache

from analyzers.model import Diagnosis
from bot.github.parts import Part
from bot.github.shelf import mark_used
from bot.release import analysis_key
from bot.store.findings import diagnosis_from_text, diagnosis_to_text
from handlers.context import Fetched
from handlers.render.redaction import redact_diagnosis

log = structlog.get_logger()

#: The same question comes again when a delivery is repeated or a pull request is looked through for what was missed.
KEPT_IN_MEMORY = 256


def question(
    repo_id: int, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched], analysis: str
) -> str | None:
    """Return what identifies the answer, a hash; None if a file has no digest to tell it by, or there is none."""
    files = [one for one in (job_log, *artifacts) if one is not None]
    if not any(one.path for one in files) or any(one.path and not one.digest for one in files):
        return None
    told = [[one.name, one.digest if one.path else one.why] for one in files]
    asked = json.dumps([repo_id, analysis, job_name, job_log is None, told])
    return hashlib.sha256(asked.encode()).hexdigest()


class Answers:
    """The diagnoses of all repositories; with a folder they survive a restart."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: LRUCache[str, Diagnosis] = LRUCache(KEPT_IN_MEMORY)

    async def question(
        self, repo_id: int, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]
    ) -> str | None:
        """Return `question` of this release."""
        analysis = await asyncio.to_thread(analysis_key)
        return question(repo_id, job_name=job_name, job_log=job_log, artifacts=artifacts, analysis=analysis)

    async def recall(self, repo_id: int, asked: str | None) -> Diagnosis | None:
        """Return what was found when the same was asked, None if nobody did."""
        if asked is None:
            return None
        found = self._known.get(asked)
        if found is None and self._folder is not None:
            found = await asyncio.to_thread(_read, self._place(self._folder, repo_id, asked))
            if found is not None:
                self._known[asked] = found
        return found

    async def keep(self, repo_id: int, asked: str | None, found: Diagnosis) -> None:
        """Keep an answer. A disk that takes none costs only the next reading."""
        if asked is None:
            return
        self._known[asked] = found
        if self._folder is not None:
            try:
                await asyncio.to_thread(_write, self._place(self._folder, repo_id, asked), found)
            except OSError as exc:
                log.warning("answers.not_kept", why=exc.strerror or str(exc))

    def _place(self, folder: Path, repo_id: int, asked: str) -> Path:
        return folder / str(int(repo_id)) / "answers" / f"{asked[:32]}.json"


def _read(path: Path) -> Diagnosis | None:
    """Return what is kept there. Whatever is wrong with it costs only another reading of the logs."""
    try:
        found = diagnosis_from_text(path.read_text("utf-8"))
        mark_used(path)
    except FileNotFoundError:
        return None
    except ValueError:  # the machine stopped while it was written
        log.warning("answers.unreadable", file=path.name, why="it is damaged")
        with suppress(OSError):  # the next answer takes its place anyway
            path.unlink(missing_ok=True)
        return None
    except OSError as exc:  # another user's, perhaps
        log.warning("answers.unreadable", file=path.name, why=exc.strerror or str(exc))
        return None
    return found


def _write(path: Path, found: Diagnosis) -> None:
    part = Part(path)
    try:
        # As findings are: without secrets, and they are taken out again, to no effect, when a finding is made of it.
        part.append(diagnosis_to_text(redact_diagnosis(found)).encode())
        part.finish(path)
    finally:
        part.discard()
