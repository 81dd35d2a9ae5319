"""Which runs belong to which pull request, and how their jobs stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from config.repo import JobNames, RepoConfig

from .context import Context, Job, Pull, RefusedError, Run
from .events import RED
from .job_names import is_consequence, read_name
from .selection import Candidate

#: Only GitHub itself pushes these branches.
MERGE_QUEUE = re.compile(r"gh-readonly-queue/.+/pr-(?P<number>\d+)-[0-9a-f]{40,64}")
#: A cancelled job is re-run with the failed ones.
RERUNNABLE = RED | {"cancelled"}


def ended_key(run_id: int, attempt: int) -> str:
    """Under which key it is noted that a finished attempt has been dealt with."""
    return f"ended-{run_id}-{attempt}"


def merge_queue_pull(run: Run) -> int | None:
    """Return the pull request that a merge-queue run tests, None if it is another kind of run."""
    found = MERGE_QUEUE.fullmatch(run.head_branch or "") if run.event == "merge_group" else None
    return int(found["number"]) if found else None


def mirrored_pull(run: Run, config: RepoConfig) -> int | None:
    """Return the number in the name of a vetted copy's branch.

    The branch of a pull request's own run may be one of a fork, which anybody names as he likes.
    """
    if run.event.startswith("pull_request"):
        return None
    before, after = config.mirror_branch.split("{number}", 1)
    found = re.fullmatch(re.escape(before) + r"(\d{1,10})" + re.escape(after), run.head_branch or "")
    return int(found[1]) if found else None


async def pulls_of_run(run: Run, ctx: Context) -> list[Pull]:
    """Find the open pull requests whose present head a run tests.

    The event's own list is empty for forks and for copies of branches, so the branch name leads and the head commit
    confirms. A run of an older head belongs to nobody any more.
    """
    queued = merge_queue_pull(run)
    if queued is not None:
        return [pull for pull in await _pulls([queued], ctx) if pull.state == "open"]
    mirrored = mirrored_pull(run, ctx.config)
    numbers = [mirrored] if mirrored is not None else list(run.pull_numbers)
    pulls = await _pulls(numbers, ctx) if numbers else list(await ctx.github.pulls_of_commit(run.head_sha))
    return [pull for pull in pulls if pull.state == "open" and pull.head_sha == run.head_sha]


async def _pulls(numbers: Iterable[int], ctx: Context) -> list[Pull]:
    pulls = []
    for number in numbers:
        try:
            pulls.append(await ctx.github.pull(number))
        except RefusedError as error:
            if error.status != 404:  # a branch may be named like a pull request that does not exist
                raise
    return pulls


async def runs_of_head(pull: Pull, ctx: Context) -> list[Run]:
    """Return the runs of the present head that the pull request's own events started, newest first.

    Another pull request may have the same head; the runs on its vetted copy are about its merge, not about ours.
    """
    runs = await ctx.github.runs(head_sha=pull.head_sha)
    own = (run for run in runs if mirrored_pull(run, ctx.config) in {None, pull.number})
    return sorted((run for run in own if run.event != "merge_group"), key=_age, reverse=True)


def newest_per_workflow(runs: Iterable[Run]) -> list[Run]:
    """Keep the newest run of each workflow: a newer one replaces what an older one found."""
    newest: dict[int, Run] = {}
    for run in sorted(runs, key=_age):
        newest[run.workflow_id] = run
    return list(newest.values())


def _age(run: Run) -> tuple[float, int]:
    return run.created_at.timestamp(), run.id


def main_run(runs: Sequence[Run], *, number: int, config: RepoConfig) -> Run | None:
    """Pick the run that labels and commands act upon: of the configured workflow, on the vetted copy if any."""
    named = [run for run in runs if run.name == config.workflow] or list(runs)
    copies = [run for run in named if mirrored_pull(run, config) == number] or named
    return max(copies, key=_age, default=None)


async def mirror_sha(number: int, ctx: Context) -> str | None:
    """Return the head of the vetted copy of a pull request, None if there is no copy."""
    return await ctx.github.branch_sha(ctx.config.mirror_branch.format(number=number))


def shown_name(job: Job, patterns: JobNames) -> str:
    """Return a job's name; twins of one name on two platforms are told apart."""
    name = read_name(job.name, patterns, runner_labels=job.runner_labels)
    return f"{job.name} (gb200)" if name.gb200 and "gb200" not in job.name else job.name


def is_red(job: Job) -> bool:
    """A job that failed, or that was stopped after one of its steps had failed."""
    broke_off = job.conclusion == "cancelled" and any(step.conclusion in RED for step in job.steps)
    return job.conclusion in RED or broke_off


def failed_leaves(jobs: Iterable[Job], patterns: JobNames) -> list[Job]:
    """Return the jobs that failed by themselves."""
    return [job for job in jobs if is_red(job) and not is_consequence(job.name, patterns)]


def failed_gates(jobs: Iterable[Job], patterns: JobNames) -> list[Job]:
    """Return the jobs that only say that something else failed."""
    return [job for job in jobs if is_red(job) and is_consequence(job.name, patterns)]


def candidates(jobs: Iterable[Job], patterns: JobNames) -> list[Candidate]:
    """Return what a person can select for a re-run."""
    return [
        Candidate(job.id, read_name(job.name, patterns, runner_labels=job.runner_labels), job.conclusion in RERUNNABLE)
        for job in jobs
        if not is_consequence(job.name, patterns)
    ]
