"""What the simulated GitHub knows: plain records, changed only by `bot.demo` itself.

Times are UTC. Ids come from one counter per kind and never repeat, as on GitHub.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from bot.demo.actions_state import Artifact, Job, Run
from bot.demo.check_state import CheckRun

Role = Literal["admin", "maintain", "write", "triage", "read", "none"]
PERMISSIONS = {
    "actions": "write",
    "checks": "write",
    "contents": "read",
    "issues": "write",
    "members": "read",
    "metadata": "read",
    "pull_requests": "write",
}
EVENTS = (
    "check_run",
    "check_suite",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_job",
    "workflow_run",
)


class Clock:
    """UTC now, plus what a test has advanced it by; tokens, signed URLs and time stamps follow it."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, by: timedelta) -> None:
        self._ahead += by


@dataclass
class User:
    """A person, a bot or an organization."""

    id: int
    login: str
    type: Literal["User", "Bot", "Organization"] = "User"


@dataclass
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str = "ededed"


@dataclass
class Commit:
    """A commit; `parents[1]` of a pull request's merge commit is the head that was merged."""

    sha: str
    parents: tuple[str, ...]
    message: str
    at: datetime


@dataclass
class Reaction:
    """A reaction to a comment; one per user and content."""

    id: int
    user: User
    content: str
    at: datetime


@dataclass
class Comment:
    """A comment on a pull request; `app_id` is set when an App wrote it."""

    id: int
    pull: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    app_id: int | None = None
    kind: Literal["issue", "review", "review_comment"] = "issue"
    reactions: list[Reaction] = field(default_factory=list)


@dataclass
class TimelineItem:
    """What the demo page tells between the comments: a label, a push, a run's start or end."""

    at: datetime
    kind: str  # labeled, unlabeled, pushed, closed, run
    actor: str
    text: str
    look: str = ""  # of a run: its conclusion, or "started"


@dataclass
class Pull:
    """A pull request."""

    id: int
    number: int
    title: str
    body: str
    author: User
    head_ref: str
    head_sha: str
    base_ref: str
    merge_commit_sha: str
    created_at: datetime
    updated_at: datetime
    fork: bool = True
    draft: bool = False
    locked: bool = False
    plain_issue: bool = False  # an issue shares numbers and comments with pull requests, and is none
    state: Literal["open", "closed"] = "open"
    merged: bool = False
    closed_at: datetime | None = None
    labels: dict[str, Label] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    timeline: list[TimelineItem] = field(default_factory=list)

    @property
    def mirror_branch(self) -> str:
        """The branch in the base repository on which CI runs (domain: the copy that a bot pushes)."""
        return f"pull-request/{self.number}"


@dataclass
class Repo:
    """A repository with all that hangs on it."""

    id: int
    owner: User
    name: str
    created_at: datetime
    default_branch: str = "main"
    private: bool = False
    roles: dict[str, Role] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    teams: dict[str, set[str]] = field(default_factory=dict)  # slug of a team of the owner -> logins

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def comments_of(self, pull: int) -> list[Comment]:
        """The comments of one pull request, oldest first."""
        mine = (one for _, one in sorted(self.comments.items()) if one.pull == pull)
        return [comment for comment in mine if comment.kind == "issue"]


@dataclass
class App:
    """The GitHub App under test."""

    id: int
    slug: str
    user: User  # "<slug>[bot]"
    owner: User
    private_key_pem: str
    public_keys_pem: list[str]  # an App may have several keys at once
    webhook_secret: str
    created_at: datetime
    webhook_url: str | None = None
    permissions: dict[str, str] = field(default_factory=lambda: dict(PERMISSIONS))
    events: tuple[str, ...] = EVENTS


@dataclass
class Installation:
    """The App, installed on some repositories of one account."""

    id: int
    app_id: int
    account: User
    repo_ids: set[int] = field(default_factory=set)


@dataclass
class Token:
    """An installation token; `repo_ids` and `permissions` may be narrower than the installation's."""

    value: str
    installation_id: int
    repo_ids: frozenset[int]
    permissions: dict[str, str]
    expires_at: datetime


@dataclass
class Delivery:
    """One try at handing an event to the App. A redelivery is another try with the same `guid`."""

    id: int
    guid: str
    app_id: int
    event: str
    action: str | None
    payload: dict[str, Any]
    repo_id: int | None
    installation_id: int | None
    delivered_at: datetime
    redelivery: bool = False
    duration_s: float = 0.0
    status: str = "pending"  # "OK" once the App has answered 2xx
    status_code: int = 0
    response: str = ""
    request_headers: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return 200 <= self.status_code < 300


class State:
    """Everything of one simulated GitHub."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.api_url = ""
        self.storage_url = ""
        self.web_url = ""
        self.enterprise = False  # an Enterprise Server: below /api/v3, and without rate limits
        self.repos: dict[int, Repo] = {}
        self.users: dict[str, User] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.deliveries: list[Delivery] = []
        self._ids: defaultdict[str, Iterator[int]] = defaultdict(self._counter)
        self._starts = itertools.count(41_000_000, 7_000_000)

    def _counter(self) -> Iterator[int]:
        return itertools.count(next(self._starts))

    def next_id(self, kind: str) -> int:
        """A new id of this kind; ids of different kinds lie far apart, so that a mix-up shows."""
        return next(self._ids[kind])

    def user(self, login: str, *, kind: Literal["User", "Bot", "Organization"] = "User") -> User:
        """The user of this login, made when there is none."""
        if login not in self.users:
            self.users[login] = User(self.next_id("user"), login, kind)
        return self.users[login]

    def repo(self, full_name: str) -> Repo | None:
        """The repository "owner/name" (case does not matter, as on GitHub)."""
        wanted = full_name.lower()
        return next((repo for repo in self.repos.values() if repo.full_name.lower() == wanted), None)

    def installations_on(self, repo: Repo) -> list[Installation]:
        """One per App that is installed on the repository."""
        return [found for found in self.installations.values() if repo.id in found.repo_ids]

    def app_of_token(self, token: Token) -> App | None:
        return self.apps.get(self.installations[token.installation_id].app_id)

    def new_sha(self, *parts: str) -> str:
        """40 hex digits that no other call returns."""
        seed = "\0".join([*parts, str(self.next_id("sha"))])
        return hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest()


def stamp(at: datetime) -> str:
    """GitHub's spelling of a time: whole seconds, UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
