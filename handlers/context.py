"""What a handler may see of the world: GitHub, the files of a run, our own memory, the clock, all as Protocols.

The implementations are in `bot/`; a handler never opens a socket, a file or a database. One `Context` is bound to one
repository, so nothing of another repository can be reached through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from analyzers.model import Diagnosis
from config.repo import RepoConfig

from .check_view import Checks

Reaction = Literal["+1", "-1", "confused", "eyes", "rocket"]
#: Where a text with commands stands. GitHub takes no reactions to the text of a review.
Place = Literal["comment", "review", "review_comment"]
#: `role_name` of GitHub's collaborator permission; "none" for somebody who is no collaborator.
Role = str


class UserError(Exception):
    """The person who asked can fix it; the message is Markdown and is posted as the answer."""


class RateLimitedError(Exception):
    """GitHub asked us to wait; the work is queued again."""

    unsure = False  # True: a write that may have been carried out all the same

    def __init__(self, why: str, *, after_s: float) -> None:
        super().__init__(why)
        self.after_s = after_s


class RefusedError(Exception):
    """GitHub refused a request for good (403, 404, 410, 422); `status` and GitHub's own `message` say why."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Repo:
    """A repository as a delivery names it. `id` is what we key on: a rename changes `full_name` only."""

    id: int
    full_name: str  # "owner/name"
    installation_id: int
    default_branch: str = "main"


@dataclass(frozen=True)
class Event:
    """One accepted delivery, slimmed to the fields in `handlers/events.py`."""

    delivery_id: str
    event: str  # X-GitHub-Event
    action: str
    repo: Repo
    data: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A piece of work for the durable engine. The same `key` is never carried out twice."""

    name: str  # a key of handlers.tasks.TASKS
    repo: Repo
    key: str  # unique within the repository and the name
    data: dict[str, Any] = field(default_factory=dict)
    pull: int | None = None  # tasks of one pull request run one at a time
    delay_s: float = 0.0


@dataclass(frozen=True)
class Pull:
    """A pull request as the API shows it now."""

    number: int
    state: Literal["open", "closed"]
    draft: bool
    locked: bool
    title: str
    author: str
    head_sha: str
    head_ref: str
    head_repo: str | None  # None: the fork is gone
    base_ref: str
    labels: tuple[str, ...]
    html_url: str = ""


@dataclass(frozen=True)
class Run:
    """A workflow run in its newest attempt. `conclusion` is None until it is completed."""

    id: int
    name: str
    workflow_id: int
    event: str
    status: str
    conclusion: str | None
    head_sha: str
    head_branch: str | None
    attempt: int
    created_at: datetime
    html_url: str
    pull_numbers: tuple[int, ...] = ()
    started_at: datetime | None = None  # of the newest attempt


@dataclass(frozen=True)
class Step:
    """One step of a job."""

    name: str
    number: int
    status: str
    conclusion: str | None


@dataclass(frozen=True)
class Job:
    """A job of one attempt. Ids change with each attempt; names do not."""

    id: int
    run_id: int
    attempt: int
    name: str
    status: str
    conclusion: str | None
    head_sha: str
    runner_labels: tuple[str, ...]
    started_at: datetime | None
    completed_at: datetime | None
    html_url: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Artifact:
    """A log artifact. Its name holds neither job nor attempt (see `handlers/artifact_choice.py`)."""

    id: int
    run_id: int
    name: str
    size_bytes: int
    created_at: datetime
    expired: bool
    digest: str | None = None  # "sha256:<hex>" since upload-artifact v4
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Comment:
    """A comment on a pull request. `app_id` is set when an App wrote it."""

    id: int
    body: str
    author: str
    author_id: int
    app_id: int | None
    created_at: datetime
    html_url: str = ""


class GitHub(Protocol):
    """One repository, spoken to as the installation. All writes are paced; reads are cached by ETag.

    Raises (every method): RefusedError for a final no, RateLimitedError when GitHub asks to wait.
    """

    async def pull(self, number: int) -> Pull: ...
    async def open_pulls(self) -> Sequence[Pull]: ...
    async def pulls_of_commit(self, sha: str) -> Sequence[Pull]: ...
    async def changed_files(self, number: int) -> Sequence[str]: ...
    async def branch_sha(self, branch: str) -> str | None: ...
    async def commit_parents(self, sha: str) -> Sequence[str]: ...
    async def run(self, run_id: int) -> Run: ...
    async def runs(
        self, *, head_sha: str | None = None, branch: str | None = None, status: str | None = None
    ) -> Sequence[Run]: ...
    async def jobs(self, run_id: int, *, every_attempt: bool = False) -> Sequence[Job]: ...  # of the newest, or of all
    async def job(self, job_id: int) -> Job: ...
    async def artifacts(self, run_id: int) -> Sequence[Artifact]: ...
    async def rerun(self, run_id: int) -> None: ...
    async def rerun_failed(self, run_id: int) -> None: ...
    async def rerun_job(self, job_id: int) -> None: ...
    async def cancel(self, run_id: int) -> None: ...
    async def add_labels(self, pull: int, labels: Sequence[str]) -> None: ...
    async def remove_label(self, pull: int, label: str) -> None: ...
    async def role(self, login: str) -> Role: ...
    async def in_team(self, team: str, login: str) -> bool: ...
    async def react(self, comment_id: int, content: Reaction, *, place: Place = "comment") -> None: ...
    async def unreact(self, comment_id: int, content: Reaction, *, place: Place = "comment") -> None: ...
    async def file(self, path: str) -> bytes | None: ...


class Comments(Protocol):
    """Our own comments on pull requests, found again by a signed hidden marker AND our App's id."""

    #: Create the comment `key` of this pull request, or edit it when its text changed.
    async def upsert(self, pull: int, *, key: str, body: str) -> Comment: ...
    async def find(self, pull: int, *, key: str) -> Comment | None: ...


@dataclass(frozen=True)
class Fetched:
    """A file that was streamed to disk, or the reason why it was not, in words for the comment."""

    name: str
    path: str | None
    why: str = ""
    digest: str = ""  # the same files have the same one, also where they lie elsewhere


class Files(Protocol):
    """Downloads of one run, streamed to disk under a bounded folder; a second request for one reuses the first."""

    async def job_log(self, job: Job) -> Fetched: ...
    async def artifact(self, artifact: Artifact) -> Fetched: ...
    async def tail(self, fetched: Fetched, *, max_bytes: int = 262_144) -> str:
        """Return the last `max_bytes` of a fetched file as text (bad UTF-8 replaced), "" if it was not fetched."""


class Analysis(Protocol):
    """The analyzers in worker processes, off the event loop."""

    async def diagnose(self, *, job_name: str, job_log: Fetched | None, artifacts: Sequence[Fetched]) -> Diagnosis: ...


@dataclass(frozen=True)
class JobFinding:
    """What we found out about one failed (or recovered) job of a pull request."""

    pull: int
    head_sha: str
    run_id: int
    run_name: str
    run_url: str
    attempt: int
    job_id: int
    job_name: str
    job_url: str
    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()  # what could not be read, or was ambiguous


class Store(Protocol):
    """Our memory of one repository."""

    async def once(self, key: str, value: dict[str, Any]) -> dict[str, Any]:
        """Store `value` under `key` unless there is one already; return what is stored. Survives a crash."""
        ...

    async def recall(self, key: str) -> dict[str, Any] | None: ...
    async def remember(self, key: str, value: dict[str, Any]) -> None: ...  # replaces what was there
    async def change(self, key: str, by: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """Replace what is stored by `by` of it, as one step; `by` is pure and may be called again."""
        ...

    async def forget(self, key: str) -> None: ...
    async def save_finding(self, finding: JobFinding) -> None:
        """Keep the finding; one per (run, attempt, job name), the newer wins."""
        ...

    async def findings(self, *, head_sha: str) -> Sequence[JobFinding]:
        """All findings of this head, oldest first; several pull requests may share it."""
        ...


class Clock(Protocol):
    """Now, in UTC. The one clock that handlers may see."""

    def __call__(self) -> datetime: ...


@dataclass(frozen=True)
class Context:
    """All that a handler may touch while it works for one repository."""

    repo: Repo
    github: GitHub
    comments: Comments
    checks: Checks
    files: Files
    analysis: Analysis
    store: Store
    config: RepoConfig
    app_slug: str  # our App's login is "<app_slug>[bot]"
    label_debounce_s: float
    report_url: str | None
    now: Clock
