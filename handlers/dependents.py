"""How much runs again with a job: GitHub repeats all that depends on it, and does not say what that is.

The order in which kinds of jobs need each other is that of the pull request's workflow: lint and the plan, then the
build, then unit tests, then (if all of those pass) functional tests. Gates and reports repeat along with anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from config.repo import JobNames

from .context import Job
from .job_names import is_consequence, read_name

STAGES = {"other": 0, "lint": 0, "build": 1, "unit": 2, "functional": 3}
ON_GPUS = frozenset({"unit", "functional"})


@dataclass(frozen=True)
class Dependents:
    """Jobs that run again. `gates`: gates and reports do too; `more`: jobs that were skipped come on top."""

    jobs: int
    gpu_jobs: int
    gates: bool
    more: bool


def dependents_of(picked: Collection[str], jobs: Sequence[Job], patterns: JobNames) -> Dependents:
    """Count what runs again beside the picked jobs.

    Args:
        picked: names of the jobs that are re-run.
        jobs: all jobs of the newest attempt.
    """
    kinds = {job.name: read_name(job.name, patterns).kind for job in jobs}
    stage = min((STAGES[kinds[name]] for name in picked if name in kinds), default=0)
    again = [
        job
        for job in jobs
        if job.name not in picked
        and not is_consequence(job.name, patterns)
        and STAGES[kinds[job.name]] > stage
        and job.conclusion != "skipped"
    ]
    skipped = any(job.conclusion == "skipped" and kinds[job.name] != "lint" for job in jobs)
    return Dependents(
        jobs=len(again),
        gpu_jobs=sum(kinds[job.name] in ON_GPUS for job in again),
        gates=any(is_consequence(job.name, patterns) for job in jobs),
        more=skipped and stage < STAGES["functional"],
    )


def gpu_jobs(names: Collection[str], patterns: JobNames) -> int:
    """Count the jobs that run on GPUs."""
    return sum(read_name(name, patterns).kind in ON_GPUS for name in names)
