"""One call to GitHub from start to end: limits, failures, and their translation into what handlers know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import aiohttp
import gidgethub
import jwt
from gidgethub.aiohttp import GitHubAPI
from yarl import URL

from bot.foreign_json import mend_foreign
from bot.github.limits import Gate, is_limit
from bot.github.weather import Weather
from handlers.context import RateLimitedError, RefusedError

Answer = TypeVar("Answer")

ACCEPT = "application/vnd.github+json"
#: Without it GitHub means the same version today; said aloud it stays that one.
VERSION_HEADER = {"X-GitHub-Api-Version": "2022-11-28"}
#: A renamed repository answers 301 to a read and 307 to a write; 302 is a download and followed elsewhere, by hand.
RENAMED = frozenset({301, 307, 308})
MAX_HOPS = 3
#: How often a read is tried in all, when GitHub is unwell.
READ_TRIES = 4
#: GitHub takes a signature of at most ten minutes, and asks to date it back by one; a new one is made in good time.
SIGNED_FOR = timedelta(minutes=8)
SIGNED_BEFORE = timedelta(minutes=1)
RENEW_SIGNATURE = timedelta(minutes=6)
#: After so long a queued piece of work may try again when GitHub is unwell, in seconds.
UNWELL_WAIT_S = 30.0


class UnreachableError(RateLimitedError):
    """GitHub did not answer, or answered 5xx: nothing was decided, the work is queued again."""


class UnsureError(UnreachableError):
    """As above, for a write: GitHub may have carried it out all the same, so look before writing again."""

    unsure = True


class _UnwellError(Exception):
    """A 5xx of any kind, also those that http.HTTPStatus does not know (520 and such of proxies)."""


#: What "GitHub did not answer properly" looks like from here: the network, a time-out, a body cut short.
TROUBLE = (_UnwellError, aiohttp.ClientError, TimeoutError, ConnectionError, json.JSONDecodeError, UnicodeDecodeError)


class Api(GitHubAPI):
    """gidgethub's client, held to the configured API host: a token never travels anywhere else.

    gidgethub would send the token along to any absolute URL, and aiohttp would follow any redirect and turn a
    redirected POST into a GET.
    """

    def __init__(  # noqa: PLR0913 (the time, and who is told of an answer)
        self,
        session: aiohttp.ClientSession,
        requester: str,
        *,
        answer_within_s: float,
        clock: Callable[[], datetime],
        moved: Callable[[str], None] = lambda _path: None,
        dated: Callable[[str | None], None] = lambda _date: None,
        **options: Any,
    ) -> None:
        """Take two that are told of each answer.

        Args:
            clock: GitHub's time, in UTC.
            moved: called with the path of each request that GitHub sends on to another one.
            dated: called with the header `Date` of each answer.
        """
        super().__init__(session, requester, **options)
        self._clock = clock
        self._moved = moved
        self._dated = dated
        self._signed: tuple[datetime, str] | None = None
        self._timeout = aiohttp.ClientTimeout(total=answer_within_s, sock_connect=15)
        self._origin = URL(self.base_url).origin()

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        target, hops = URL(url, encoded=True), 0  # a template has encoded it; aiohttp would decode parts of it again
        while True:
            if target.origin() != self._origin:
                raise RefusedError("GitHub pointed away from its own host", status=502)
            async with self._session.request(
                method, target, headers=headers, data=body, allow_redirects=False, timeout=self._timeout
            ) as response:
                status, answered, content = response.status, response.headers, await response.read()
            self._dated(answered.get("date"))
            if status >= 500:
                raise _UnwellError(f"GitHub answered {status}")
            onward = answered.get("location")
            if status not in RENAMED or onward is None or hops == MAX_HOPS or (status == 301 and method != "GET"):
                return status, answered, mend_foreign(content)
            hops += 1
            self._moved(target.path)
            target = target.join(URL(onward))

    def _get_app_jwt(self) -> str | None:
        """Sign as the App by GitHub's clock: gidgethub would by the host's, and GitHub takes none that is wrong."""
        if self.app_id is None or self.private_key is None:
            return None
        now = self._clock()
        if self._signed is None or not timedelta() <= now - self._signed[0] < RENEW_SIGNATURE:
            issued = now - SIGNED_BEFORE
            claims = {"iat": int(issued.timestamp()), "exp": int((now + SIGNED_FOR).timestamp()), "iss": self.app_id}
            self._signed = now, jwt.encode(claims, self.private_key, algorithm="RS256")
        return self._signed[1]


class Calls:
    """Carries out calls for one identity (the App, or one installation) and shares what GitHub asks of it."""

    def __init__(self, gate: Gate, weather: Weather, *, who: str, retry_pause_s: float) -> None:
        self._who = who
        self._gate = gate
        self._weather = weather
        self._retry_pause_s = retry_pause_s
        self._slots = asyncio.Semaphore(20)  # GitHub allows 100 at once; a busy pull request must not take them all

    async def carry_out(self, send: Callable[[], Awaitable[Answer]], *, repeatable: bool) -> Answer:
        """Call `send` until it gets an answer.

        A rate limit is waited out if that is short, since GitHub did nothing then; a failure is tried again only if
        the call is `repeatable`.

        Raises:
            RefusedError: a final no.
            RateLimitedError: GitHub wants a longer wait.
            UnreachableError, UnsureError: GitHub is unwell.
        """
        failures = 0
        while True:
            await self._gate.enter()
            try:
                async with self._slots:
                    answer = await send()
            except gidgethub.RedirectionException as exc:
                raise RefusedError("GitHub answered with an unexpected redirect", status=int(exc.status_code)) from exc
            except gidgethub.BadRequest as exc:
                self._judge(exc)
            except TROUBLE as exc:
                failures += 1
                await self._recover(exc, failures, repeatable=repeatable)
            else:
                self._gate.passed()
                self._weather.answered(self._who, ok=True)
                return answer

    def _judge(self, exc: gidgethub.BadRequest) -> None:
        """Close the gate if the answer means "later"; raise if it means "no"."""
        status, said = int(exc.status_code), str(exc)
        if not is_limit(status, exc.headers, said):
            self._weather.answered(self._who, ok=False)
            raise RefusedError(said, status=status) from exc
        wait_s = self._gate.close(exc.headers)
        self._weather.limited(self._who, why=f"{status} {said}", for_s=wait_s)

    async def _recover(self, exc: BaseException, failures: int, *, repeatable: bool) -> None:
        why = f"GitHub cannot be reached: {exc or type(exc).__name__}"
        self._weather.unreachable(exc)
        if not repeatable:
            never_sent = isinstance(exc, aiohttp.ClientConnectorError)
            raise (UnreachableError if never_sent else UnsureError)(why, after_s=UNWELL_WAIT_S) from exc
        if failures == READ_TRIES:
            raise UnreachableError(why, after_s=UNWELL_WAIT_S) from exc
        await asyncio.sleep(self._retry_pause_s * 2.0 ** (failures - 1))
