"""Re-runs and cancellations, and every way in which GitHub refuses them (domain 2.4)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.demo.actions_state import FAILED, Attempt, Job, Run
from bot.demo.ci import Actions
from bot.demo.ci_plan import dependents
from bot.demo.errors import ApiError
from bot.demo.state import Repo, State

RERUNS_ALLOWED_FOR = timedelta(days=30)
MOST_RERUNS = 50
RUNNING = "This workflow is already running"
JOB_RUNNING = "The workflow run containing this job is already running"
TOO_OLD = "Unable to retry this workflow run because it was created over a month ago"
NOT_RETRIABLE = "This workflow run cannot be retried"
OLD_ATTEMPT = "Only jobs from the current attempt can be re-run"


class Reruns:
    """Starts new attempts. Each gets new job ids; what is not run again is copied."""

    def __init__(self, state: State, actions: Actions) -> None:
        self._state = state
        self._actions = actions
        self._cancelling: set[asyncio.Task[None]] = set()

    def rerun(self, repo: Repo, run: Run, actor: str) -> None:
        """All jobs again. Artifacts of earlier attempts disappear (domain 2.5).

        Raises:
            ApiError: 403 while the run is in progress, too old, or re-run too often.
        """
        self._check(run, RUNNING)
        for artifact in [found for found in repo.artifacts.values() if found.run_id == run.id]:
            del repo.artifacts[artifact.id]
        self._start(repo, run, actor, keep=set())

    def rerun_failed(self, repo: Repo, run: Run, actor: str) -> None:
        """The failed jobs and their dependents again.

        Raises:
            ApiError: as `rerun`, and 403 when nothing failed.
        """
        self._check(run, RUNNING)
        failed = [name for name, job in run.attempt.jobs.items() if job.conclusion in FAILED]
        if not failed:
            raise ApiError(403, NOT_RETRIABLE)
        again = dependents(run.attempt.specs, failed)
        self._start(repo, run, actor, keep=set(run.attempt.jobs) - again)

    def rerun_job(self, repo: Repo, job: Job, actor: str) -> None:
        """One job and its dependents again.

        Raises:
            ApiError: as `rerun`, and 403 for a job of an earlier attempt.
        """
        run = repo.runs[job.run_id]
        self._check(run, JOB_RUNNING)
        if job.attempt != run.attempt_number:
            raise ApiError(403, OLD_ATTEMPT)
        again = dependents(run.attempt.specs, [job.spec.name])
        self._start(repo, run, actor, keep=set(run.attempt.jobs) - again)

    def _check(self, run: Run, running: str) -> None:
        if run.status != "completed":
            raise ApiError(403, running)
        if self._state.clock() - run.created_at > RERUNS_ALLOWED_FOR:
            raise ApiError(403, TOO_OLD)
        if run.attempt_number > MOST_RERUNS:
            raise ApiError(403, NOT_RETRIABLE)

    def _start(self, repo: Repo, run: Run, actor: str, *, keep: set[str]) -> None:
        before = run.attempt
        after = Attempt(before.number + 1, self._state.clock(), dict(before.specs))
        run.attempts.append(after)
        for name, job in before.jobs.items():
            if name in keep:
                copy = replace(job, id=self._state.next_id("job"), attempt=after.number)
                after.jobs[name] = copy
                repo.jobs[copy.id] = copy
        after.plan, after.labels_read = before.plan, before.labels_read
        run.triggering_actor = actor
        run.status, run.conclusion, run.updated_at = "queued", None, self._state.clock()
        self._actions.begin_attempt(repo, run)

    def cancel(self, repo: Repo, run: Run) -> None:
        """Ask for the run's end; it comes a little later, as on GitHub.

        Raises:
            ApiError: 409 when the run is completed.
        """
        if run.status == "completed":
            raise ApiError(409, "Cannot cancel a workflow run that is completed.")
        task = asyncio.create_task(self._cancel_soon(repo, run))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel_soon(self, repo: Repo, run: Run) -> None:
        await asyncio.sleep(0.02)
        self._actions.cancel(repo, run)
