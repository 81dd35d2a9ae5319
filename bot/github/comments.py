"""Our comments on pull requests: found again by a signed marker and our own account, written once, edited in place."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from cachetools import LRUCache

from bot.github.app import AppIdentity
from bot.github.client import Installation, Method, until_sure
from bot.github.payloads import CommentData
from bot.github.repository import REPO, split_name
from handlers.context import Comment, RefusedError, Repo

log = structlog.get_logger()

#: GitHub refuses longer bodies with 422; rendering stays well below (60,000).
MOST_CHARACTERS = 65_536
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
ISSUE_COMMENTS = REPO + "/issues/{issue_number}/comments"
ONE_COMMENT = REPO + "/issues/comments/{comment_id}"


class Marker:
    """The hidden first line of a comment: `<!-- mlm-bot:<key>:<signature> -->`.

    The signature binds it to one pull request of one repository, so a marker that is copied elsewhere means nothing.
    """

    def __init__(self, webhook_secrets: Sequence[str]) -> None:
        """Take the webhook secrets, the current one first: during a rotation comments of the old one are still ours."""
        # A key of its own: what stands under a comment in public must say nothing about what signs deliveries.
        self._keys = [hmac.digest(secret.encode(), b"mlm-bot comment marker 1", "sha256") for secret in webhook_secrets]
        if not self._keys:
            raise ValueError("no secret to sign markers with")

    def write(self, repo_id: int, pull: int, key: str) -> str:
        return self._lines(repo_id, pull, key)[0]

    def reads(self, body: str, repo_id: int, pull: int, key: str) -> bool:
        """Say whether the body begins with our marker for this key."""
        first = body.lstrip().split("\n", 1)[0].rstrip().encode()
        return any(hmac.compare_digest(first, line.encode()) for line in self._lines(repo_id, pull, key))

    def _lines(self, repo_id: int, pull: int, key: str) -> list[str]:
        if KEY.fullmatch(key) is None:
            raise ValueError(f"not a key for a comment: {key!r}")
        said = f"{repo_id}:{pull}:{key}".encode()
        signatures = (hmac.new(secret, said, hashlib.sha256).hexdigest()[:32] for secret in self._keys)
        return [f"<!-- mlm-bot:{key}:{signature} -->" for signature in signatures]


class CommentTurns:
    """One writer per comment in this process; across processes the engine runs a pull request one task at a time."""

    def __init__(self) -> None:
        self._locks: LRUCache[tuple[int, int, str], asyncio.Lock] = LRUCache(maxsize=10_000)

    def of(self, repo_id: int, pull: int, key: str) -> asyncio.Lock:
        return self._locks.setdefault((repo_id, pull, key), asyncio.Lock())


@dataclass(frozen=True)
class Desk:
    """What all repositories' comments share: who we are, how we sign, whose turn it is, the pause when unsure."""

    app: AppIdentity
    marker: Marker
    look_again_s: float
    turns: CommentTurns = field(default_factory=CommentTurns)


class RepoComments:
    """`handlers.context.Comments` for one repository."""

    def __init__(self, installation: Installation, repo: Repo, desk: Desk) -> None:
        self._installation = installation
        self._repo = repo
        self._desk = desk
        owner, name = split_name(repo.full_name)
        self._names: dict[str, Any] = {"owner": owner, "repo": name}

    async def find(self, pull: int, *, key: str) -> Comment | None:
        mine = await self._mine(pull, key)
        return mine[0].to_comment() if mine else None

    async def upsert(self, pull: int, *, key: str, body: str) -> Comment:
        """Make the comment `key` of this pull request say `body`.

        Raises:
            ValueError: the body is longer than GitHub takes.
            RefusedError: GitHub refused it (403 on a locked conversation).
            UnsureError: GitHub failed again and again; nothing is lost by calling once more later.
        """
        text = f"{self._desk.marker.write(self._repo.id, pull, key)}\n{body}"
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"a comment of {len(text)} characters; GitHub takes {MOST_CHARACTERS}")
        async with self._desk.turns.of(self._repo.id, pull, key):
            # A POST can fail with 502 after it worked, and somebody may delete the comment between look and edit.
            return await until_sure(lambda: self._look_and_write(pull, key, text), pause_s=self._desk.look_again_s)

    async def _look_and_write(self, pull: int, key: str, text: str) -> Comment:
        mine = await self._mine(pull, key)
        if not mine:
            return await self._create(pull, text)
        # The oldest stays: people have answered below it and linked to it, and every process picks the same one.
        first, *twins = mine
        for twin in twins:
            log.warning("comment.twin_deleted", pull=pull, key=key, comment=twin.id)
            await self._delete(twin.id)
        if _same(first.body or "", text):
            return first.to_comment()
        answer = await self._write("PATCH", ONE_COMMENT, data={"body": text}, repeatable=True, comment_id=first.id)
        log.info("comment.edited", pull=pull, key=key, comment=first.id)
        return CommentData.model_validate(answer).to_comment()

    async def _create(self, pull: int, text: str) -> Comment:
        answer = await self._write("POST", ISSUE_COMMENTS, data={"body": text}, issue_number=pull)
        created = CommentData.model_validate(answer).to_comment()
        log.info("comment.created", pull=pull, comment=created.id)
        return created

    async def _delete(self, comment_id: int) -> None:
        try:
            await self._write("DELETE", ONE_COMMENT, repeatable=True, comment_id=comment_id)
        except RefusedError as exc:
            if exc.status != 404:  # gone already: what we wanted
                raise

    async def _mine(self, pull: int, key: str) -> list[CommentData]:
        """Return our comments of that key, oldest first. A marker in anybody else's comment is not looked at."""
        found = await self._installation.pages(
            self._repo, ISSUE_COMMENTS + "{?per_page}", **self._names, issue_number=pull
        )
        comments = [CommentData.model_validate(item) for item in found]
        written = [comment for comment in comments if self._desk.app.wrote(comment)]
        mine = [c for c in written if self._desk.marker.reads(c.body or "", self._repo.id, pull, key)]
        return sorted(mine, key=lambda comment: comment.id)

    async def _write(self, method: Method, path: str, /, **values: Any) -> Any:
        return await self._installation.write(self._repo, method, path, **self._names, **values)


def _same(there: str, wanted: str) -> bool:
    """Compare as GitHub stores it: it may turn line ends into CR LF and drop blanks at the end."""
    return there.replace("\r\n", "\n").rstrip() == wanted.replace("\r\n", "\n").rstrip()
