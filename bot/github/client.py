"""GitHub spoken to as one installation: tokens, limits, paging, paced writes. What to ask is `repository.py`'s."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal, TypeVar

import gidgethub

from bot.github.calls import ACCEPT, VERSION_HEADER, Api, Calls, UnsureError
from bot.github.limits import WriteTurns
from bot.github.tokens import Tokens
from handlers.context import RefusedError, Repo

Answer = TypeVar("Answer")
Method = Literal["POST", "PATCH", "DELETE"]
#: A listing is read to its end, but not without end: GitHub itself caps files at 3,000 and searches at 1,000.
MOST_ITEMS = 10_000
PER_PAGE = 100
#: How often something is looked for and, if it is not there, written, while GitHub leaves us unsure.
WRITE_TRIES = 3
NOT_FOUND = 404


class Installation:
    """Calls for the repositories of one installation. Paths are templates: values are filled in percent-encoded."""

    def __init__(self, api: Api, calls: Calls, tokens: Tokens, turns: WriteTurns) -> None:
        self._api = api
        self._calls = calls
        self._tokens = tokens
        self._turns = turns

    async def get(self, repo: Repo, path: str, /, *, teams: bool = False, **values: Any) -> Any:
        """Read one thing; `teams`: one that only a token for the organization's teams may read."""
        return await self._authorized(
            repo,
            lambda token: self._api.getitem(
                path, values, oauth_token=token, accept=ACCEPT, extra_headers=VERSION_HEADER
            ),
            teams=teams,
        )

    async def pages(
        self, repo: Repo, path: str, /, *, items_in: str | None = None, most: int = MOST_ITEMS, **values: Any
    ) -> list[Any]:
        """Read a listing over its pages, in GitHub's order, `most` items at the most.

        Args:
            items_in: the key that holds the items where a page is an object (runs, jobs, artifacts).
        """

        async def collect(token: str) -> list[Any]:
            found: list[Any] = []
            listing = self._api.getiter(
                path,
                {**values, "per_page": PER_PAGE},
                oauth_token=token,
                accept=ACCEPT,
                extra_headers=VERSION_HEADER,
                iterable_key=items_in,
            )
            async with aclosing(listing) as items:
                async for item in items:
                    found.append(item)
                    if len(found) == most:
                        break
            return found

        return await self._authorized(repo, collect)

    async def location(self, repo: Repo, path: str, /, **values: Any) -> str:
        """Return where GitHub redirects a download to: a signed URL that lives about a minute."""

        async def ask(token: str) -> str | None:
            options: dict[str, Any] = {"accept": ACCEPT, "extra_headers": VERSION_HEADER}
            try:
                await self._api.getitem(path, values, oauth_token=token, **options)
            except gidgethub.RedirectionException as exc:
                return exc.headers.get("location")
            return None

        where = await self._authorized(repo, ask)
        if not where:
            raise RefusedError("GitHub offered no download", status=502)
        return where

    async def write(
        self, repo: Repo, method: Method, path: str, /, *, data: Any = b"", repeatable: bool = False, **values: Any
    ) -> Any:
        """Change something. Never sent twice unless GitHub said that it did nothing, or it is `repeatable`.

        Args:
            repeatable: to say it twice is to say it once, so that it is tried again as a read is.

        Raises:
            UnsureError: it may have been carried out; look before trying again.
        """

        async def send(token: str) -> Any:
            options: dict[str, Any] = {"oauth_token": token, "accept": ACCEPT, "extra_headers": VERSION_HEADER}
            match method:
                case "POST":
                    return await self._api.post(path, values, data=data, **options)
                case "PATCH":
                    return await self._api.patch(path, values, data=data, **options)
                case "DELETE":
                    return await self._api.delete(path, values, data=data, **options)

        async with self._turns.take():
            return await self._authorized(repo, send, repeatable=repeatable)

    async def _authorized(
        self, repo: Repo, send: Callable[[str], Awaitable[Answer]], *, repeatable: bool = True, teams: bool = False
    ) -> Answer:
        """Call with the current token, and once more with a new one if GitHub no longer takes it.

        The renewal is around the call: a retry inside of gidgethub sends the old Authorization header again.
        """
        token = await self._tokens.current(repo, teams=teams)
        try:
            return await self._calls.carry_out(lambda: send(token), repeatable=repeatable)
        except RefusedError as exc:
            if exc.status != 401:
                raise
        self._tokens.reject(repo, token)
        renewed = await self._tokens.current(repo, teams=teams)
        return await self._calls.carry_out(lambda: send(renewed), repeatable=repeatable)


async def until_sure(look_and_write: Callable[[], Awaitable[Answer]], *, pause_s: float) -> Answer:
    """Call what looks before it writes, again if it is not known what became of the write: the next look tells.

    Raises:
        UnsureError: it stayed unknown; nothing is lost by calling once more later.
        RefusedError: GitHub refused; a 404 is looked at again, since what was found may have been deleted meanwhile.
    """
    for tries_left in reversed(range(WRITE_TRIES)):
        try:
            return await look_and_write()
        except UnsureError:
            if not tries_left:
                raise
            await asyncio.sleep(pause_s)
        except RefusedError as exc:
            if exc.status != NOT_FOUND or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")
