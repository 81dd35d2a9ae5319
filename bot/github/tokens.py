"""Installation tokens: one per repository, with no more rights than the work needs, renewed before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from cachetools import LRUCache
from pydantic import BaseModel, Field

from bot.github.calls import ACCEPT, UNWELL_WAIT_S, VERSION_HEADER, Api, Calls, UnreachableError
from bot.github.weather import Weather
from handlers.context import RefusedError, Repo

log = structlog.get_logger()

Answer = TypeVar("Answer")

#: GitHub ends a token after an hour; a call that starts now must not meet the end of it.
RENEW_BEFORE = timedelta(minutes=5)
#: Reactions to comments on pull requests were refused with issues:write alone, so both are asked for.
PERMISSIONS = {
    "actions": "write",
    "checks": "write",
    "contents": "read",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
}


#: Whom a trouble concerns, in the log and in `/readyz`.
THE_APP = "the App"
UNAUTHORIZED = 401
#: The installation is suspended, or gone.
NO_INSTALLATION = frozenset({403, 404})
#: Asked for only where a repository's settings name a team: many installations do not grant it, and are refused then.
OF_TEAMS = {**PERMISSIONS, "members": "read"}


class LockedOutError(UnreachableError):
    """GitHub does not take the App's key now, which says nothing about the work: it is queued again."""


class SignedCalls:
    """Calls that the App signs with its own key; whether GitHub takes the key is told to `weather`."""

    def __init__(self, calls: Calls, weather: Weather) -> None:
        self._calls = calls
        self._weather = weather

    async def carry_out(self, send: Callable[[], Awaitable[Answer]], *, repeatable: bool) -> Answer:
        """Carry a call out as `Calls` does.

        Raises:
            LockedOutError: GitHub does not take the key.
            RefusedError: any other no.
        """
        try:
            answer = await self._calls.carry_out(send, repeatable=repeatable)
        except RefusedError as exc:
            if exc.status != UNAUTHORIZED:
                raise
            self._weather.locked_out(THE_APP, why=f"{exc.status} {exc.message}")
            # The key was taken away or a clock is wrong: an operator cures that, and then the work can be done.
            raise LockedOutError(f"the App's key is refused: {exc.message}", after_s=UNWELL_WAIT_S) from exc
        self._weather.let_in(THE_APP)
        return answer


class IssuedToken(BaseModel):
    """What GitHub answers; the token has no fixed length or alphabet."""

    token: str = Field(repr=False)
    expires_at: datetime


@dataclass
class _Slot:
    issued: IssuedToken | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Tokens:
    """Issues and remembers tokens. `api` signs as the App itself."""

    def __init__(self, api: Api, calls: SignedCalls, weather: Weather, *, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._calls = calls
        self._weather = weather
        self._clock = clock
        self._slots: LRUCache[tuple[int, int, bool], _Slot] = LRUCache(maxsize=1_000)

    async def current(self, repo: Repo, *, teams: bool = False) -> str:
        """Return a token for this repository alone that is good for the next minutes.

        Args:
            teams: it may also read the members of the organization's teams.

        Raises:
            RefusedError: the App is not installed there, or lacks a permission that we ask for.
            LockedOutError: GitHub no longer takes the App's key.
        """
        slot = self._slots.setdefault((repo.installation_id, repo.id, teams), _Slot())
        async with slot.lock:  # ten calls at once need one new token, not ten
            if slot.issued is None or self._clock() >= slot.issued.expires_at - RENEW_BEFORE:
                slot.issued = await self._issue(repo, OF_TEAMS if teams else PERMISSIONS)
            return slot.issued.token

    def reject(self, repo: Repo, token: str) -> None:
        """Forget `token`, which GitHub refused, unless it has been renewed meanwhile."""
        for teams in (False, True):
            slot = self._slots.get((repo.installation_id, repo.id, teams))
            if slot is not None and slot.issued is not None and slot.issued.token == token:
                slot.issued = None
                log.warning("github.token_refused", repo=repo.full_name, installation=repo.installation_id)

    async def _issue(self, repo: Repo, permissions: dict[str, str]) -> IssuedToken:
        try:
            answer = await self._calls.carry_out(
                lambda: self._api.post(
                    "/app/installations/{installation_id}/access_tokens",
                    {"installation_id": repo.installation_id},
                    data={"repository_ids": [repo.id], "permissions": permissions},
                    accept=ACCEPT,
                    extra_headers=VERSION_HEADER,
                ),
                repeatable=True,  # a token that nobody received harms nobody
            )
        except RefusedError as exc:
            self._weather.locked_out(_whom(repo, exc.status), why=f"{exc.status} {exc.message}")
            why = f"no access token for {repo.full_name} (installation {repo.installation_id}): {exc.message}"
            raise RefusedError(why, status=exc.status) from exc
        self._weather.let_in(installation_name(repo.installation_id), repo.full_name)
        return IssuedToken.model_validate(answer)


def installation_name(installation_id: int) -> str:
    """Return how an installation is called where its troubles are told."""
    return f"installation {installation_id}"


def _whom(repo: Repo, status: int) -> str:
    """Say who gets no token; 422 is about the repository: it is gone, or no longer among those of the installation."""
    return installation_name(repo.installation_id) if status in NO_INSTALLATION else repo.full_name
