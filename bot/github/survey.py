"""What the App itself can ask: which of its deliveries failed, to send one again, and where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from bot.github.calls import ACCEPT, VERSION_HEADER, Api, Calls
from bot.github.tokens import SignedCalls
from handlers.context import RefusedError, Repo

#: GitHub keeps deliveries for 3 days (7 on Enterprise Server); more failed ones than this are an outage of weeks.
MOST_DELIVERIES = 10_000
MOST_INSTALLATIONS = 10_000
MOST_REPOS = 100_000
PER_PAGE = 100
#: How an installation answers that was suspended or removed since it was listed, its new token included.
GONE_SINCE = frozenset({401, 403, 404})
#: What is in the list is all that this token may see.
LOOK_ONLY = {"metadata": "read"}


class Attempt(BaseModel):
    """One failed try at handing us an event. A redelivery is another one with the same `guid` and a higher `id`."""

    id: int
    guid: str
    delivered_at: datetime
    event: str
    action: str | None = None
    status_code: int
    installation_id: int | None = None
    repository_id: int | None = None

    @property
    def failed(self) -> bool:
        """Anything but 2xx; GitHub writes 0 or 502 where nobody answered."""
        return not 200 <= self.status_code < 300


class _RequestData(BaseModel):
    payload: dict[str, Any] | None = None


class _DeliveryData(BaseModel):
    request: _RequestData


class _InstallationData(BaseModel):
    id: int
    suspended_at: datetime | None = None


class _RepoData(BaseModel):
    id: int
    full_name: str
    default_branch: str = "main"
    archived: bool = False


class _TokenData(BaseModel):
    token: str


class Survey:
    """Speaks as the App; only lists of repositories need a token of the installation, which may do nothing else."""

    def __init__(self, api: Api, signed: SignedCalls, calls: Calls) -> None:
        """Take `calls` for what is asked with a token."""
        self._api = api
        self._signed = signed
        self._calls = calls

    async def failed_deliveries(self, *, since: datetime) -> list[Attempt]:
        """Return the failed tries, newest first, back to `since` (UTC) or as far as GitHub remembers."""

        async def collect() -> list[Attempt]:
            found: list[Attempt] = []
            listing = self._pages("/app/hook/deliveries{?per_page,status}", {"status": "failure"})
            async with aclosing(listing) as items:
                async for item in items:
                    attempt = Attempt.model_validate(item)
                    if attempt.delivered_at < since or len(found) == MOST_DELIVERIES:
                        break
                    if attempt.failed:  # an Enterprise Server of before 2023 ignores the filter
                        found.append(attempt)
            return found

        return await self._signed.carry_out(collect, repeatable=True)

    async def payload(self, attempt_id: int) -> Mapping[str, Any]:
        """Return what GitHub tried to send; the list of deliveries names the event only."""
        answer = await self._signed.carry_out(
            lambda: self._api.getitem("/app/hook/deliveries/{delivery_id}", {"delivery_id": attempt_id}, **_common()),
            repeatable=True,
        )
        return _DeliveryData.model_validate(answer).request.payload or {}

    async def redeliver(self, attempt_id: int) -> None:
        """Ask GitHub to send the delivery again, under the same GUID. Harmless when it is repeated."""
        await self._signed.carry_out(
            lambda: self._api.post(
                "/app/hook/deliveries/{delivery_id}/attempts", {"delivery_id": attempt_id}, data=b"", **_common()
            ),
            repeatable=True,
        )

    async def repositories(self) -> list[Repo]:
        """Return where the App is installed and could work; suspended installations and archives are left out."""
        found: list[Repo] = []
        for installation_id in await self._installations():
            try:
                found += await self._repos_of(installation_id)
            except RefusedError as error:
                if error.status not in GONE_SINCE:
                    raise
        return found

    async def _installations(self) -> list[int]:
        items = await self._collect(self._signed, "/app/installations{?per_page}", most=MOST_INSTALLATIONS)
        read = [_InstallationData.model_validate(item) for item in items]
        return [one.id for one in read if one.suspended_at is None]

    async def _repos_of(self, installation_id: int) -> list[Repo]:
        answer = await self._signed.carry_out(
            lambda: self._api.post(
                "/app/installations/{installation_id}/access_tokens",
                {"installation_id": installation_id},
                data={"permissions": LOOK_ONLY},
                **_common(),
            ),
            repeatable=True,
        )
        token = _TokenData.model_validate(answer).token
        items = await self._collect(
            self._calls,
            "/installation/repositories{?per_page}",
            items_in="repositories",
            most=MOST_REPOS,
            oauth_token=token,
        )
        read = [_RepoData.model_validate(item) for item in items]
        return [Repo(one.id, one.full_name, installation_id, one.default_branch) for one in read if not one.archived]

    async def _collect(self, by: SignedCalls | Calls, path: str, *, most: int, **options: Any) -> list[Any]:
        async def collect() -> list[Any]:
            found: list[Any] = []
            async with aclosing(self._pages(path, {}, **options)) as items:
                async for item in items:
                    found.append(item)
                    if len(found) == most:
                        break
            return found

        return await by.carry_out(collect, repeatable=True)

    def _pages(self, path: str, values: dict[str, Any], *, items_in: str | None = None, **options: Any) -> Any:
        return self._api.getiter(path, {**values, "per_page": PER_PAGE}, iterable_key=items_in, **_common(), **options)


def _common() -> dict[str, Any]:
    return {"accept": ACCEPT, "extra_headers": VERSION_HEADER}
