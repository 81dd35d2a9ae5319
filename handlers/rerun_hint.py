"""The shortest `/mlm rerun` line that means exactly one failed job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from config.repo import RepoConfig

from .context import Job, JobFinding
from .runs import candidates, failed_leaves
from .selection import Selected, select


def rerun_hint(finding: JobFinding, jobs: Sequence[Job], config: RepoConfig) -> str:
    """Return what to type to try again.

    With several failed jobs it is always `failed`: gates stay shut until all are green, so one by one only costs time.
    """
    leaves = failed_leaves(jobs, config.jobs)
    chosen = [item for item in candidates(jobs, config.jobs) if item.job_id == finding.job_id]
    if len(leaves) != 1 or not chosen or chosen[0].name.kind not in {"unit", "functional"}:
        return "/mlm rerun failed"
    name = chosen[0].name
    kind = [item for item in candidates(jobs, config.jobs) if item.name.kind == name.kind]
    folder = name.bucket.split("/*")[0]
    for word in (folder.rsplit("/", 1)[-1], name.bucket):
        picked = select(kind, [word])
        if isinstance(picked, Selected) and [item.job_id for item in picked.jobs] == [finding.job_id]:
            return f"/mlm rerun {name.kind} {shlex.quote(word)}"
    return "/mlm rerun failed"
