"""GitHub Actions of the simulated GitHub: how runs, attempts and jobs change, and which events tell of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bot.demo import job_log
from bot.demo.actions_state import FAILED, Artifact, Conclusion, Job, JobSpec, Run, Status
from bot.demo.artifacts import Content, count_members, pack
from bot.demo.ci_plan import CONFIGURE, CONSEQUENCES, UNEXPANDED, job_specs, plan_for
from bot.demo.shapes_actions import check_run_json, job_json, run_json, workflow_json
from bot.demo.state import Repo, State, TimelineItem
from bot.demo.webhooks import Webhooks

Json = dict[str, Any]


class Actions:
    """Moves runs along. Every change is told by webhook, as GitHub does."""

    def __init__(self, state: State, hooks: Webhooks) -> None:
        self._state = state
        self._hooks = hooks
        #: Called when an attempt has begun; the player listens.
        self.on_begin: Callable[[Repo, Run], None] = lambda _repo, _run: None

    def _tell_run(self, repo: Repo, run: Run, action: str) -> None:
        fields = {"workflow_run": run_json(self._state, repo, run), "workflow": workflow_json(self._state, repo, run)}
        sender = self._state.user(run.triggering_actor or run.actor)
        self._hooks.emit(repo, "workflow_run", action, sender, fields)

    def _tell_job(self, repo: Repo, run: Run, job: Job, action: str) -> None:
        sender = self._state.user(run.triggering_actor or run.actor)
        if action == "completed":
            check = {"check_run": check_run_json(self._state, repo, run, job)}
            self._hooks.emit(repo, "check_run", action, sender, check)
        self._hooks.emit(repo, "workflow_job", action, sender, {"workflow_job": job_json(self._state, repo, run, job)})

    def _note(self, repo: Repo, run: Run, text: str) -> None:
        if run.pull is not None:
            actor = run.triggering_actor or run.actor
            repo.pulls[run.pull].timeline.append(
                TimelineItem(self._state.clock(), "run", actor, text, run.conclusion or "started")
            )

    def begin_attempt(self, repo: Repo, run: Run) -> None:
        """Announce the newest attempt and let the jobs that need nothing appear."""
        for other in self.rivals(repo, run):
            self.cancel(repo, other)
        self._tell_run(repo, run, "requested")
        self._set_run(run, "in_progress", None)
        self._tell_run(repo, run, "in_progress")
        self._note(repo, run, f"{run.name} #{run.number}, attempt {run.attempt_number} started")
        self.advance(repo, run)
        self.on_begin(repo, run)

    def rivals(self, repo: Repo, run: Run) -> list[Run]:
        """Unfinished runs of the same concurrency group: a new one cancels them (domain 2.4, 3.1)."""
        same = (other for other in repo.runs.values() if other.concurrency_group == run.concurrency_group)
        return [other for other in same if other is not run and other.status != "completed"]

    def _set_run(self, run: Run, status: Status, conclusion: Conclusion | None) -> None:
        run.status, run.conclusion, run.updated_at = status, conclusion, self._state.clock()

    def advance(self, repo: Repo, run: Run) -> None:
        """Let every job appear whose needs are completed; complete the run when nothing is left."""
        attempt = run.attempt
        for spec in attempt.specs.values():  # in order of need, so one pass is enough
            needed = [attempt.jobs.get(name) for name in spec.needs]
            if spec.name in attempt.jobs or not all(job and job.status == "completed" for job in needed):
                continue
            if spec.always or all(job and job.conclusion == "success" for job in needed):
                self._queue(repo, run, spec)
            else:
                self._skip(repo, run, spec)
        if all(name in attempt.jobs and attempt.jobs[name].status == "completed" for name in attempt.specs):
            self._complete_run(repo, run)

    def _new_job(self, repo: Repo, run: Run, spec: JobSpec) -> Job:
        now = self._state.clock()
        job = Job(self._state.next_id("job"), run.id, run.attempt_number, spec, run.head_sha, now)
        run.attempt.jobs[spec.name] = job
        repo.jobs[job.id] = job
        return job

    def _queue(self, repo: Repo, run: Run, spec: JobSpec) -> None:
        self._tell_job(repo, run, self._new_job(repo, run, spec), "queued")

    def _skip(self, repo: Repo, run: Run, spec: JobSpec) -> None:
        job = self._new_job(repo, run, spec)
        if spec.kind == "functional":  # a matrix that never ran shows as one row with an unexpanded name (domain 3.3)
            job.hidden = any(other.shown_name for other in run.jobs)
            job.shown_name = UNEXPANDED
        job.status, job.conclusion, job.started_at = "completed", "skipped", job.created_at
        job.completed_at = job.created_at
        if not job.hidden:
            self._tell_job(repo, run, job, "completed")

    def start_job(self, repo: Repo, run: Run, job: Job) -> None:
        """A runner takes the job. `configure` reads the labels at this moment and never again (domain 3.2)."""
        if job.status not in {"queued", "waiting"}:
            return
        if run.status == "waiting":
            self._set_run(run, "in_progress", None)
        job.status, job.started_at = "in_progress", self._state.clock()
        if job.spec.name == CONFIGURE and run.pull is not None:
            run.attempt.labels_read = tuple(repo.pulls[run.pull].labels)
        self._tell_job(repo, run, job, "in_progress")

    def hold_job(self, repo: Repo, run: Run, job: Job) -> None:
        """The job waits for the approval of its environment, and the run with it."""
        job.status = "waiting"
        self._set_run(run, "waiting", None)
        self._tell_job(repo, run, job, "waiting")

    def finish_job(  # noqa: PLR0913 - one keyword for each thing that a job leaves behind
        self,
        repo: Repo,
        run: Run,
        job: Job,
        conclusion: Conclusion | None = None,
        *,
        log: str | bytes | None = None,
        artifact: Content | None = None,
        step: str | None = None,
    ) -> None:
        """End the job; None lets a consequence job follow from the others and any other job succeed.

        Raises:
            ValueError: the job is completed already.
        """
        if job.status == "completed":
            raise ValueError(f"{job.name!r} is completed already")
        if conclusion != "cancelled":
            self.start_job(repo, run, job)
        job.conclusion = conclusion or self._natural_conclusion(run, job)
        job.failed_step = step
        job.completed_at = self._state.clock()
        self._write_log(repo, run, job, log, artifact)
        job.status = "completed"
        if job.spec.name == CONFIGURE and job.conclusion == "success":
            self._configured(run)
        self._tell_job(repo, run, job, "completed")
        if run.status != "completed":
            self.advance(repo, run)

    def _natural_conclusion(self, run: Run, job: Job) -> Conclusion:
        if job.spec.name in CONSEQUENCES and any(other.conclusion in FAILED for other in run.jobs):
            return "failure"
        return "success"

    def _write_log(self, repo: Repo, run: Run, job: Job, log: str | bytes | None, content: Content | None) -> None:
        text = log.encode() if isinstance(log, str) else log
        at = job.completed_at or job.created_at
        if text is None and job.conclusion != "cancelled":
            sha = self.sha_under_test(repo, run)
            labels = run.attempt.labels_read
            text = job_log.plain_log(job, sha=sha, plan=plan_for(labels), labels=labels, at=at)
        if content is not None:
            uploaded = self.upload(repo, run, job_log.artifact_name(job.name, run.id), pack(content), at)
            text = job_log.with_upload(text or b"", uploaded, files=count_members(uploaded.data), at=at)
        job.log = text

    def sha_under_test(self, repo: Repo, run: Run) -> str:
        """What `configure` resolves: the pull request's merge commit NOW, not that of the run's head (domain 3.5)."""
        return repo.pulls[run.pull].merge_commit_sha if run.pull is not None else run.head_sha

    def _configured(self, run: Run) -> None:
        attempt = run.attempt
        attempt.plan = plan_for(attempt.labels_read)
        buckets = [spec.name.removesuffix(" - latest") for spec in attempt.specs.values() if spec.kind == "unit"]
        attempt.specs = job_specs(attempt.plan, buckets=buckets)

    def upload(self, repo: Repo, run: Run, name: str, data: bytes, at: datetime) -> Artifact:
        """Add an artifact to the run's newest attempt."""
        artifact = Artifact(self._state.next_id("artifact"), run.id, run.attempt_number, name, data, at)
        repo.artifacts[artifact.id] = artifact
        return artifact

    def _complete_run(self, repo: Repo, run: Run, conclusion: Conclusion | None = None) -> None:
        ends = {job.conclusion for job in run.jobs}
        if conclusion is None:
            conclusion = (
                "failure" if ends & {"failure", "timed_out"} else "cancelled" if "cancelled" in ends else "success"
            )
        self._set_run(run, "completed", conclusion)
        self._note(repo, run, f"{run.name} #{run.number}, attempt {run.attempt_number}: {conclusion}")
        self._tell_run(repo, run, "completed")

    def cancel(self, repo: Repo, run: Run) -> None:
        """Cancel what has not ended; what failed before stays failed (domain 2.4)."""
        if run.status == "completed":
            return
        self._set_run(run, "completed", "cancelled")  # first, so that no further job comes up
        for job in run.jobs:
            if job.status != "completed":
                self.finish_job(repo, run, job, "cancelled")
        self._complete_run(repo, run, "cancelled")
