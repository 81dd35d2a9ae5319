"""Workflow runs, attempts, jobs and artifacts of the simulated GitHub."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Status = Literal["queued", "waiting", "in_progress", "completed"]
Conclusion = Literal["success", "failure", "cancelled", "skipped", "timed_out"]
Kind = Literal["setup", "configure", "lint", "build", "unit", "functional", "gate", "report"]
FAILED: frozenset[str | None] = frozenset({"failure", "cancelled", "timed_out"})


@dataclass(frozen=True)
class JobSpec:
    """A job as the workflow declares it. `always`: runs even when a job that it needs did not succeed."""

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()
    runner_label: str = "ubuntu-latest"
    always: bool = False
    steps: tuple[str, ...] = ("Set up job", "Run", "Complete job")


@dataclass
class Artifact:
    """An uploaded artifact: the bytes of its zip."""

    id: int
    run_id: int
    attempt: int
    name: str
    data: bytes
    created_at: datetime
    expired: bool = False


@dataclass
class Job:
    """A job of one attempt; a later attempt has a copy with another id."""

    id: int
    run_id: int
    attempt: int
    spec: JobSpec
    head_sha: str
    created_at: datetime
    status: Status = "queued"
    conclusion: Conclusion | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    log: bytes | None = None  # None: nothing was written, the API answers 404
    failed_step: str | None = None
    shown_name: str | None = None  # a skipped matrix shows its unexpanded name, once
    hidden: bool = False  # its other legs

    @property
    def name(self) -> str:
        return self.shown_name or self.spec.name


@dataclass(frozen=True)
class Plan:
    """What `configure` decided from the labels that it read (domain 3.2)."""

    scope: Literal["L0", "L1"] = "L0"
    n_repeat: int = 5
    lightweight: bool = False
    lts: bool = False


@dataclass
class Attempt:
    """One try at a run. `specs` grow when `configure` has read the labels, `jobs` when jobs become ready."""

    number: int
    started_at: datetime
    specs: dict[str, JobSpec]
    jobs: dict[str, Job] = field(default_factory=dict)  # by spec name
    plan: Plan | None = None
    labels_read: tuple[str, ...] = ()


@dataclass
class Run:
    """A workflow run; `status` and `conclusion` are the newest attempt's."""

    id: int
    repo_id: int
    pull: int | None
    number: int
    name: str
    workflow_id: int
    path: str
    event: str
    head_sha: str
    head_branch: str
    actor: str
    created_at: datetime
    updated_at: datetime
    display_title: str
    check_suite_id: int
    attempts: list[Attempt]
    status: Status = "queued"
    conclusion: Conclusion | None = None
    triggering_actor: str = ""

    @property
    def attempt(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]

    @property
    def attempt_number(self) -> int:
        return self.attempt.number

    @property
    def jobs(self) -> list[Job]:
        """The jobs of the newest attempt that the API shows, in the order in which they appeared."""
        return [job for job in self.attempt.jobs.values() if not job.hidden]

    @property
    def concurrency_group(self) -> str:
        """Runs of one workflow on one branch share it; a new one cancels the one in progress (domain 3.1)."""
        return f"{self.name}-{self.head_branch}"
