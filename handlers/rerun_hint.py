"""The shortest `/mlm rerun` line that means exactly one failed job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from config.repo import RepoConfig

from .context import Job, JobFinding
from .runs import candidates, failed_leaves, shown_name
from .selection import Selected, select


def rerun_hint(finding: JobFinding, jobs: Sequence[Job], config: RepoConfig) -> str:
    """Return what to type to try again.

    With several failed jobs it is always `failed`: gates stay shut until all are green, so one by one only costs time.
    """
    leaves = failed_leaves(jobs, config.jobs)
    if len(leaves) != 1 or shown_name(leaves[0], config.jobs) != finding.job_name:
        return "/mlm rerun failed"
    everything = candidates(jobs, config.jobs)
    name = next(item.name for item in everything if item.job_id == leaves[0].id)
    if name.kind not in {"unit", "functional"}:
        return "/mlm rerun failed"
    same_kind = [item for item in everything if item.name.kind == name.kind]
    for word in (name.bucket.split("/*")[0].rsplit("/", 1)[-1], name.bucket):
        picked = select(same_kind, [word])
        if isinstance(picked, Selected) and [item.job_id for item in picked.jobs] == [leaves[0].id]:
            return f"/mlm rerun {name.kind} {shlex.quote(word)}"
    return "/mlm rerun failed"
