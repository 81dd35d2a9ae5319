"""What a worker process does: one job's files in, one diagnosis out, within bounded memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from analyzers.model import Category, Confidence, Diagnosis, Skipped
from bot.archives import UnreadableError
from handlers.context import Fetched

if TYPE_CHECKING:
    from bot.diagnose import ArtifactMemory

#: Bytes of private memory. The reading layer stays far below it; a log that gets past that kills only this process.
MEMORY_LIMIT = 3 * 1024**3
RANKING = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


def start_worker() -> None:
    """Run once in each new worker process."""
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


def diagnose_files(job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Diagnosis:
    """Diagnose one job from what was fetched of it; what could not be fetched or read is told in `read.skipped`.

    Several artifacts are alternatives (their names do not say whose they are): the one that explains most wins.
    """
    # The analyzers are loaded in the worker only: the server starts faster and stays smaller without them.
    from bot.diagnose import diagnose_path  # noqa: PLC0415

    memory = _memory()
    missing = [_skipped(one) for one in (job_log, *artifacts) if one is not None and one.path is None]
    log_path = job_log.path if job_log is not None else None
    paths = [(one.name, one.path) for one in artifacts if one.path is not None]
    found: list[Diagnosis] = []
    for name, path in paths:
        try:
            found.append(memory.diagnose(path, job_log=log_path, job_name=job_name))
        except UnreadableError as error:
            missing.append(Skipped(name, _without_paths(error, path, log_path)))
    if not found and log_path is not None:
        try:
            found.append(diagnose_path(None, job_log=log_path, job_name=job_name))
        except UnreadableError as error:
            missing.append(Skipped("job.log", _without_paths(error, log_path)))
    best = min(found, key=_explains_less, default=None)
    if best is None:
        best = unknown("Neither the job's log nor an artifact of it could be read.")
    return replace(best, read=replace(best.read, skipped=(*best.read.skipped, *missing)))


@cache
def _memory() -> ArtifactMemory:
    """Return this process's own memory of artifacts."""
    from bot.diagnose import ArtifactMemory  # noqa: PLC0415

    return ArtifactMemory()


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
