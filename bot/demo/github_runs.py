"""What a test or the demo page does with CI: start runs, end jobs, lose logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.demo.actions_state import Artifact, Attempt, Conclusion, Job, Run
from bot.demo.artifacts import Content
from bot.demo.ci_plan import CONFIGURE, UNIT_BUCKETS, WAIT, WORKFLOW_NAME, WORKFLOW_PATH, job_specs, plan_for
from bot.demo.endpoint import Parts
from bot.demo.state import Commit, Delivery, Pull, Repo


class RunVerbs:
    """The part of `SimulatedGitHub` that deals with workflow runs."""

    parts: Parts

    def repo_of(self, thing: Pull | Run | Job) -> Repo:
        """The repository that holds it."""
        for repo in self.parts.state.repos.values():
            if isinstance(thing, Pull) and repo.pulls.get(thing.number) is thing:
                return repo
            if isinstance(thing, Run) and repo.runs.get(thing.id) is thing:
                return repo
            if isinstance(thing, Job) and thing.id in repo.jobs:
                return repo
        raise LookupError(f"no repository holds {thing!r}")

    async def start_run(  # noqa: PLR0913 - each is a fact of a run that some test needs to differ
        self,
        pull: Pull,
        *,
        through: str | None = CONFIGURE,
        buckets: Sequence[str] = UNIT_BUCKETS,
        head_sha: str | None = None,
        branch: str | None = None,
        event: str = "push",
        created_at: datetime | None = None,
    ) -> Run:
        """Start CI on the mirror branch of `pull`, as the copy bot's push does; a run in progress is cancelled.

        Args:
            through: in manual mode, the job up to which everything succeeds at once; None: all stay queued.
            buckets: the unit test jobs, without " - latest".
            head_sha: the commit; the mirror branch's (without one, the pull request's head) when left out.
            branch: another than the mirror branch, such as the pull request's own or one of a merge queue.
            created_at: UTC; older than 30 days makes the run one that cannot be re-run.
        """
        repo = self.repo_of(pull)
        sha = head_sha or repo.branches.get(pull.mirror_branch, pull.head_sha)
        repo.commits.setdefault(sha, Commit(sha, (), "A commit of a branch", self.parts.state.clock()))
        run = self._new_run(repo, pull, sha, buckets)
        run.head_branch, run.event = branch or pull.mirror_branch, event
        if created_at:
            run.created_at = created_at
        self.parts.actions.begin_attempt(repo, run)
        if through is not None and not self.plays_by_itself:
            self._finish(repo, run, through)
        await self.parts.hooks.settle()
        return run

    plays_by_itself: bool = False

    def _new_run(self, repo: Repo, pull: Pull, head_sha: str, buckets: Sequence[str]) -> Run:
        state, now = self.parts.state, self.parts.state.clock()
        workflow = next((run.workflow_id for run in repo.runs.values()), None) or state.next_id("workflow")
        run = Run(
            id=state.next_id("run"),
            repo_id=repo.id,
            pull=pull.number,
            number=len(repo.runs) + 1,
            name=WORKFLOW_NAME,
            workflow_id=workflow,
            path=WORKFLOW_PATH,
            event="push",
            head_sha=head_sha,
            head_branch=pull.mirror_branch,
            actor=state.user("copy-pr-bot[bot]", kind="Bot").login,
            created_at=now,
            updated_at=now,
            display_title=pull.title,
            check_suite_id=state.next_id("suite"),
            attempts=[Attempt(1, now, job_specs(plan_for(()), buckets=buckets))],
        )
        repo.runs[run.id] = run
        return run

    def job(self, run: Run, name: str) -> Job:
        """The job of the newest attempt by its exact name.

        Raises:
            LookupError: there is none (yet).
        """
        found = run.attempt.jobs.get(name)
        if found is None:
            raise LookupError(f"attempt {run.attempt_number} has no job {name!r} (yet)")
        return found

    async def hold_in_queue(self, run: Run, name: str = WAIT) -> Job:
        """Let the job wait for the approval of the environment `test`, after what it needs has succeeded."""
        repo = self.repo_of(run)
        self._ready(repo, run, name)
        self.parts.actions.hold_job(repo, run, self.job(run, name))
        await self.parts.hooks.settle()
        return self.job(run, name)

    async def start_job(self, run: Run, name: str) -> Job:
        """Let a runner take the job, after what it needs has succeeded."""
        repo = self.repo_of(run)
        self._ready(repo, run, name)
        self.parts.actions.start_job(repo, run, self.job(run, name))
        await self.parts.hooks.settle()
        return self.job(run, name)

    async def finish_job(  # noqa: PLR0913 - one keyword for each thing that a job leaves behind
        self,
        run: Run,
        name: str,
        conclusion: Conclusion = "success",
        *,
        log: str | bytes | None = None,
        artifact: Content | None = None,
        step: str | None = None,
    ) -> Delivery:
        """End a job of the newest attempt; what it needs succeeds first. Returns the delivery that told of it.

        Args:
            log: the job's log; a plain one is made when left out. The lines of the upload are added when there is an
                artifact and the log does not say `logs_report=` itself.
            artifact: a zip (bytes, uploaded as they are), a folder, or members by name.
            step: the name of the step that failed.
        """
        repo = self.repo_of(run)
        self._ready(repo, run, name)
        job = self.job(run, name)
        self.parts.actions.finish_job(repo, run, job, conclusion, log=log, artifact=artifact, step=step)
        await self.parts.hooks.settle()
        return self._delivery("workflow_job", "completed", job.id)

    def _ready(self, repo: Repo, run: Run, name: str) -> None:
        spec = run.attempt.specs.get(name)
        if spec is None:
            raise LookupError(f"the workflow has no job {name!r}")
        for need in spec.needs:
            self._finish(repo, run, need)

    def _finish(self, repo: Repo, run: Run, name: str) -> None:
        self._ready(repo, run, name)
        job = self.job(run, name)
        if job.status != "completed":
            self.parts.actions.finish_job(repo, run, job)

    async def finish_run(self, run: Run) -> Delivery:
        """End every job that is left, as it naturally ends, and with them the run."""
        repo = self.repo_of(run)
        while run.status != "completed":
            for job in [job for job in run.jobs if job.status != "completed"]:
                self.parts.actions.finish_job(repo, run, job)
        await self.parts.hooks.settle()
        return self._delivery("workflow_run", "completed", run.id)

    def _delivery(self, event: str, action: str, subject_id: int) -> Delivery:
        for delivery in reversed(self.parts.state.deliveries):
            if (delivery.event, delivery.action) == (event, action) and delivery.payload[event]["id"] == subject_id:
                return delivery
        raise LookupError(f"no {event} {action} was told: is the App installed there, and subscribed to it?")

    async def upload(self, run: Run, name: str, content: bytes, *, at: datetime | None = None) -> Artifact:
        """Add an artifact under any name, for instance the twin of another platform."""
        return self.parts.actions.upload(self.repo_of(run), run, name, content, at or self.parts.state.clock())

    def artifacts(self, run: Run) -> list[Artifact]:
        """The artifacts that the API lists for the run; set `expired` on one to have it answered with 410."""
        return [found for found in self.repo_of(run).artifacts.values() if found.run_id == run.id]

    async def rerun(self, run: Run, *, by: str, failed_only: bool = False) -> Run:
        """A person presses a re-run button."""
        again = self.parts.reruns.rerun_failed if failed_only else self.parts.reruns.rerun
        again(self.repo_of(run), run, by)
        await self.parts.hooks.settle()
        return run

    async def rerun_job(self, run: Run, name: str, *, by: str) -> Run:
        """A person re-runs one job of the newest attempt, with its dependents."""
        self.parts.reruns.rerun_job(self.repo_of(run), self.job(run, name), by)
        await self.parts.hooks.settle()
        return run

    async def cancel_run(self, run: Run) -> None:
        """A person cancels the run."""
        self.parts.actions.cancel(self.repo_of(run), run)
        await self.parts.hooks.settle()
