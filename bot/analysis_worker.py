"""What a worker process does: one job's files in, one diagnosis out, within bounded memory."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from analyzers.model import Category, Confidence, Diagnosis, Skipped
from bot.archives import UnreadableError
from handlers.context import Fetched

if TYPE_CHECKING:
    from bot.diagnose import ReadArtifact

#: Bytes of private memory. The reading layer stays far below it; a log that gets past that kills only this process.
MEMORY_LIMIT = 3 * 1024**3
#: So much may come out of the members that are read ahead at once.
MOST_AHEAD = 2 * 1024**3
RANKING = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


def start_worker(spool: Path | None) -> None:
    """Run once in each new worker process; archives inside of others are kept in `spool` while they are read."""
    if spool is not None:
        spool.mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = str(spool)  # there may be no other place to write to
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()
    from bot.diagnose import packaged_rules  # noqa: PLC0415 (loaded in the worker only, and before its first job)

    packaged_rules()


def _end_with_parent() -> None:
    """End when the server is gone, however it ended: a pool's process would wait for its next job for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


#: What an artifact said: pickles, one of all of it or several of some logs each.
Said = tuple[bytes, ...]


@dataclass(frozen=True)
class Answer:
    """A diagnosis and, by digest, what the artifacts that were read for it said: to be given to the next one who asks.

    The bytes are this module's own: they go from worker to worker through the server, which does not look into them,
    and nowhere else. `lasting`: nothing but the files themselves made it what it is; where a file had vanished or the
    disk was full (`hindered`), the same question may have a better answer next time.
    """

    diagnosis: Diagnosis
    said: Mapping[str, Said] = field(default_factory=dict)
    lasting: bool = True
    hindered: bool = False


def diagnose_files(
    job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched], known: Mapping[str, Said]
) -> Answer:
    """Diagnose one job from what was fetched of it; what could not be fetched or read is told in `read.skipped`.

    Several artifacts are alternatives (their names do not say whose they are): the one that explains most wins.

    Args:
        known: of artifacts that were read before, in whole or in part, by digest, what an `Answer` says.
    """
    # The analyzers are loaded in the worker only: the server starts faster and stays smaller without them.
    from bot.diagnose import ReadArtifact, diagnose_path  # noqa: PLC0415

    missing = [_skipped(one) for one in (job_log, *artifacts) if one is not None and one.path is None]
    log_path = job_log.path if job_log is not None else None
    found: list[Diagnosis] = []
    said: dict[str, Said] = {}
    lasting, hindered = True, False
    for one in artifacts:
        if one.path is None:
            continue
        # From another worker, see `Answer`.
        before = [pickle.loads(said) for said in known.get(one.digest, ())]  # noqa: S301
        joined = reduce(ReadArtifact.joined, before, ReadArtifact())
        try:
            diagnosis, read, no_log = _diagnose_one(one.path, log_path, job_name, joined)
        except UnreadableError as error:
            missing.append(Skipped(one.name, _without_paths(error, one.path, log_path)))
            lasting = False
            continue
        if no_log is not None:  # not for the next artifact either
            missing.append(Skipped("job.log", _without_paths(no_log, log_path)))
            lasting, log_path = False, None
        found.append(diagnosis)
        lasting, hindered = lasting and not read.hindered, hindered or read.hindered
        if one.digest and read != joined and not read.hindered:
            said[one.digest] = (pickle.dumps(read, pickle.HIGHEST_PROTOCOL),)
    if not found and log_path is not None:
        try:
            found.append(diagnose_path(None, job_log=log_path, job_name=job_name))
        except UnreadableError as error:
            missing.append(Skipped("job.log", _without_paths(error, log_path)))
            lasting = False
    best = min(found, key=_explains_less, default=None)
    if best is None:
        best = unknown("Neither the job's log nor an artifact of it could be read.")
    return Answer(
        replace(best, read=replace(best.read, skipped=(*best.read.skipped, *missing))), said, lasting, hindered
    )


def _diagnose_one(
    path: str, log_path: str | None, job_name: str, known: ReadArtifact
) -> tuple[Diagnosis, ReadArtifact, UnreadableError | None]:
    """Diagnose from an artifact and the job's log; from the artifact alone, with the reason, if it is the log's fault.

    Raises:
        UnreadableError: the artifact cannot be read either.
    """
    from bot.diagnose import diagnose_artifact  # noqa: PLC0415

    try:
        return *diagnose_artifact(path, job_log=log_path, job_name=job_name, known=known), None
    except UnreadableError as error:
        if log_path is None:
            raise
        return *diagnose_artifact(path, job_log=None, job_name=job_name, known=known), error


def read_ahead(path: str, names: frozenset[str]) -> tuple[bytes, int] | None:
    """Read members of an archive that is still arriving; return what they said and how many bytes came out of them.

    None if anything is wrong with them: the reading proper will say so.
    """
    from bot.diagnose import read_members  # noqa: PLC0415

    try:
        read = read_members(path, names, most_bytes=MOST_AHEAD)
    except (UnreadableError, OSError):
        return None
    done = sum(read.read.values())
    return None if read.problems or read.hindered else (pickle.dumps(read, pickle.HIGHEST_PROTOCOL), done)


def unknown(summary: str) -> Diagnosis:
    """Return the honest answer when there is none."""
    return Diagnosis(
        passed=False, category=Category.UNKNOWN, retryable=False, confidence=Confidence.LOW, summary=summary
    )


def _skipped(fetched: Fetched) -> Skipped:
    return Skipped(fetched.name, fetched.why or "could not be fetched")


def _without_paths(error: UnreadableError, *paths: str | None) -> str:
    """Return the reason without where the file lies on our disk, which is nobody's business."""
    why = str(error)
    for path in filter(None, paths):
        why = why.removeprefix(f"{path}: ")
    return why


def _explains_less(diagnosis: Diagnosis) -> tuple[bool, bool, int]:
    return diagnosis.passed, diagnosis.category is Category.UNKNOWN, RANKING.index(diagnosis.confidence)
