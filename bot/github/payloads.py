"""GitHub's JSON, read strictly where we use it and not at all elsewhere, into the nouns of `handlers.context`.

Only used fields are required, and null is accepted wherever GitHub's OpenAPI document says nullable.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from handlers.context import Artifact, Comment, Job, Pull, Run, Step

#: GitHub shows content of deleted accounts under this name.
GHOST = "ghost"


class UserData(BaseModel):
    id: int
    login: str
    type: str = "User"


class NamedData(BaseModel):
    name: str


class RepoData(BaseModel):
    id: int
    full_name: str | None = None  # absent in the short form within a run's pull requests


class EndData(BaseModel):
    ref: str
    sha: str
    repo: RepoData | None = None


class PullData(BaseModel):
    number: int
    state: Literal["open", "closed"]
    draft: bool = False
    locked: bool = False
    title: str
    user: UserData | None = None
    head: EndData
    base: EndData
    labels: list[NamedData] = []
    html_url: str

    def to_pull(self) -> Pull:
        return Pull(
            number=self.number,
            state=self.state,
            draft=self.draft,
            locked=self.locked,
            title=self.title,
            author=self.user.login if self.user else GHOST,
            head_sha=self.head.sha,
            head_ref=self.head.ref,
            head_repo=self.head.repo.full_name if self.head.repo else None,
            base_ref=self.base.ref,
            labels=tuple(label.name for label in self.labels),
            html_url=self.html_url,
        )


class PullOfRunData(BaseModel):
    number: int
    base: EndData


class RunData(BaseModel):
    id: int
    name: str | None = None
    workflow_id: int
    event: str
    status: str | None = None
    conclusion: str | None = None
    head_sha: str
    head_branch: str | None = None
    run_attempt: int = 1
    created_at: datetime
    run_started_at: datetime | None = None
    html_url: str
    pull_requests: list[PullOfRunData] | None = None

    def to_run(self, repo_id: int) -> Run:
        """Convert; of the pull requests only those INTO this repository count (a fork has numbers of its own)."""
        numbers = [pull.number for pull in self.pull_requests or [] if pull.base.repo and pull.base.repo.id == repo_id]
        return Run(
            id=self.id,
            name=self.name or "",
            workflow_id=self.workflow_id,
            event=self.event,
            status=self.status or "",
            conclusion=self.conclusion,
            head_sha=self.head_sha,
            head_branch=self.head_branch,
            attempt=self.run_attempt,
            created_at=self.created_at,
            html_url=self.html_url,
            pull_numbers=tuple(numbers),
            started_at=self.run_started_at,
        )


class StepData(BaseModel):
    name: str
    number: int
    status: str
    conclusion: str | None = None


class JobData(BaseModel):
    id: int
    run_id: int
    run_attempt: int = 1
    name: str
    status: str
    conclusion: str | None = None
    head_sha: str
    labels: list[str] = []
    started_at: datetime | None = None
    completed_at: datetime | None = None
    html_url: str | None = None
    steps: list[StepData] = []

    def to_job(self) -> Job:
        steps = tuple(Step(s.name, s.number, s.status, s.conclusion) for s in self.steps)
        return Job(
            id=self.id,
            run_id=self.run_id,
            attempt=self.run_attempt,
            name=self.name,
            status=self.status,
            conclusion=self.conclusion,
            head_sha=self.head_sha,
            runner_labels=tuple(self.labels),
            started_at=self.started_at,
            completed_at=self.completed_at,
            html_url=self.html_url or "",
            steps=steps,
        )


class ArtifactData(BaseModel):
    id: int
    name: str
    size_in_bytes: int
    expired: bool
    created_at: datetime | None = None
    expires_at: datetime | None = None
    digest: str | None = None

    def to_artifact(self, run_id: int) -> Artifact | None:
        """Convert; None for one without a time, which cannot be told from those of other attempts."""
        if self.created_at is None:
            return None
        return Artifact(
            id=self.id,
            run_id=run_id,
            name=self.name,
            size_bytes=self.size_in_bytes,
            created_at=self.created_at,
            expired=self.expired,
            digest=self.digest,
            expires_at=self.expires_at,
        )


class AppData(BaseModel):
    id: int
    slug: str


class CommentData(BaseModel):
    id: int
    body: str | None = None
    user: UserData | None = None
    performed_via_github_app: AppData | None = None
    created_at: datetime
    html_url: str

    def to_comment(self) -> Comment:
        return Comment(
            id=self.id,
            body=self.body or "",
            author=self.user.login if self.user else GHOST,
            author_id=self.user.id if self.user else 0,
            app_id=self.performed_via_github_app.id if self.performed_via_github_app else None,
            created_at=self.created_at,
            html_url=self.html_url,
        )


class ReactionData(BaseModel):
    id: int
    content: str
    user: UserData | None = None


class FileData(BaseModel):
    filename: str


class ObjectData(BaseModel):
    sha: str


class RefData(BaseModel):
    ref: str
    object: ObjectData


class CommitData(BaseModel):
    sha: str
    parents: list[ObjectData]


class PermissionData(BaseModel):
    permission: str
    role_name: str | None = None  # older GitHub Enterprise Servers do not send it


class MembershipData(BaseModel):
    state: str


class CheckOutputData(BaseModel):
    annotations_count: int = 0


class CheckRunData(BaseModel):
    id: int
    name: str
    external_id: str | None = None
    app: AppData | None = None
    output: CheckOutputData = CheckOutputData()


class ContentData(BaseModel):
    type: str
    encoding: str | None = None
    content: str | None = None
