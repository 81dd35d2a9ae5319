"""The fields of GitHub's webhook payloads that we use, and no others.

Only what is used is required, so that a field that GitHub drops elsewhere breaks nothing here.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class User(_Payload):
    """Somebody, or an App's account. `id` never changes, a login may."""

    id: int
    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """An App's account or a declared bot."""
        return self.type == "Bot" or self.login.endswith("[bot]")


class RepositoryField(_Payload):
    id: int
    full_name: str = Field(pattern=r"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$")
    default_branch: str = "main"


class Installation(_Payload):
    id: int


class Envelope(_Payload):
    """What every delivery has that concerns a repository."""

    action: str = ""
    repository: RepositoryField
    installation: Installation
    sender: User


class StepField(_Payload):
    conclusion: str | None = None


class WorkflowJob(_Payload):
    id: int
    run_id: int
    run_attempt: int = 1
    name: str
    conclusion: str | None = None
    head_branch: str | None = None
    head_sha: str = ""
    steps: tuple[StepField, ...] = ()


class JobDelivery(_Payload):
    workflow_job: WorkflowJob


class WorkflowRun(_Payload):
    id: int
    run_attempt: int = 1
    event: str
    conclusion: str | None = None


class RunDelivery(_Payload):
    workflow_run: WorkflowRun


class AppField(_Payload):
    id: int = 0
    slug: str = ""


class CheckRun(_Payload):
    id: int
    name: str
    conclusion: str | None = None
    app: AppField | None = None
    head_sha: str = ""
    external_id: str = ""


class PressedButton(_Payload):
    identifier: str


class CheckDelivery(_Payload):
    check_run: CheckRun
    requested_action: PressedButton | None = None


class CheckSuite(_Payload):
    head_sha: str
    app: AppField | None = None


class SuiteDelivery(_Payload):
    check_suite: CheckSuite


class LabelField(_Payload):
    name: str


class PullField(_Payload):
    number: int
    state: str = "open"


class PullDelivery(_Payload):
    pull_request: PullField
    label: LabelField | None = None


class PullLink(_Payload):
    """Present on an issue that is a pull request."""


class Issue(_Payload):
    number: int
    pull_request: PullLink | None = None
    user: User


class TextField(_Payload):
    """A text that may hold commands."""

    id: int
    body: str | None = None
    user: User
    performed_via_github_app: AppField | None = None


class CommentField(TextField):
    created_at: datetime
    updated_at: datetime


class ReviewField(TextField):
    submitted_at: datetime | None = None
    updated_at: datetime | None = None


class OldBody(_Payload):
    from_: str = Field("", alias="from")


class Changes(_Payload):
    body: OldBody | None = None


class CommentDelivery(_Payload):
    issue: Issue
    comment: CommentField
    changes: Changes | None = None


class ReviewDelivery(_Payload):
    pull_request: PullField
    review: ReviewField
    changes: Changes | None = None


class ReviewCommentDelivery(_Payload):
    pull_request: PullField
    comment: CommentField
    changes: Changes | None = None
