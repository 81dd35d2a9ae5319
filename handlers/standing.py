"""How a job that once failed stands now: what it did last counts, in whichever attempt that was.

A new attempt lists jobs that it skipped, and lacks jobs that it has not come to: neither says anything about the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from config.repo import JobNames

from .context import Context, Job, JobFinding, Run
from .events import RED
from .render.view import JobView, Now, RunView
from .runs import failed_gates, failed_leaves, is_red, shown_name

#: A job that ended so has been carried out.
ENDED = RED | {"success"}


async def read_past(
    runs: Sequence[Run],
    jobs: Mapping[int, Sequence[Job]],
    findings: Sequence[JobFinding],
    ctx: Context,
) -> dict[int, Sequence[Job]]:
    """Return the jobs of every attempt for the runs whose newest attempt leaves a failed job open."""
    past = {}
    for run in runs:
        ours = {finding.job_name for finding in findings if finding.run_id == run.id}
        ended = {shown_name(job, ctx.config.jobs) for job in jobs.get(run.id, ()) if _ended(job)}
        if run.attempt > 1 and ours - ended:
            past[run.id] = await ctx.github.jobs(run.id, every_attempt=True)
    return past


def newest_findings(findings: Iterable[JobFinding], runs: Sequence[Run]) -> list[JobFinding]:
    """Keep the finding of each job's last failure, of runs that matter."""
    known = {run.id for run in runs}
    newest: dict[tuple[int, str], JobFinding] = {}
    for finding in findings:
        key = finding.run_id, finding.job_name
        if finding.run_id in known and (key not in newest or finding.attempt >= newest[key].attempt):
            newest[key] = finding
    return list(newest.values())


def standing(finding: JobFinding, run: Run, jobs: Sequence[Job], past: Sequence[Job], patterns: JobNames) -> JobView:
    """Say how the job of a finding stands.

    Args:
        jobs: those of the run's newest attempt.
        past: those of all its attempts, as far as they are known.
    """

    def view(now: Now, attempt: int, url: str) -> JobView:
        return JobView(finding.job_name, url, finding.attempt, now, attempt)

    job = next((one for one in jobs if shown_name(one, patterns) == finding.job_name), None)
    if job is None and run.attempt == finding.attempt:
        return view("failed", finding.attempt, finding.job_url)
    if job is not None and (_ended(job) or (job.attempt == finding.attempt and job.status == "completed")):
        passed = job.conclusion == "success"
        return view("passed" if passed else "failed", job.attempt, job.html_url if passed else finding.job_url)
    ended = [one for one in past if _ended(one) and shown_name(one, patterns) == finding.job_name]
    last = max(ended, key=lambda one: one.attempt, default=None)
    if last is not None and last.attempt > finding.attempt and last.conclusion == "success":
        return view("passed", last.attempt, last.html_url)
    if job is not None and job.status != "completed":
        return view("running", job.attempt, job.html_url)
    if job is None and run.status != "completed":
        return view("running", run.attempt, run.html_url)
    return view("unreached", run.attempt, finding.job_url)


def run_view(run: Run, jobs: Sequence[Job], patterns: JobNames, *, merge_queue: bool = False) -> RunView:
    """Count the jobs of a run's newest attempt as GitHub's own box does."""
    leaves, followers = failed_leaves(jobs, patterns), failed_gates(jobs, patterns)
    gates = followers if run.status == "completed" and not leaves else []
    red = {job.id for job in (*leaves, *followers)}
    return RunView(
        name=run.name,
        url=run.html_url,
        attempt=run.attempt,
        completed=run.status == "completed",
        conclusion=run.conclusion,
        failed=len(leaves),
        followers=len(followers),
        passed=sum(job.conclusion == "success" for job in jobs),
        skipped=sum(job.conclusion == "skipped" for job in jobs),
        cancelled=sum(job.conclusion == "cancelled" and job.id not in red for job in jobs),
        unfinished=sum(job.status != "completed" for job in jobs),
        gates=tuple(job.name for job in gates),
        merge_queue=merge_queue,
        id=run.id,
    )


def _ended(job: Job) -> bool:
    return job.conclusion in ENDED or is_red(job)
