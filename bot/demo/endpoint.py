"""One REST endpoint: its path, who may call it, and the frame around every answer (limits, ETags, paging, errors)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from aiohttp import web

from bot.demo.access import Access
from bot.demo.artifacts import SignedStore
from bot.demo.ci import Actions
from bot.demo.errors import NOT_FOUND, ApiError
from bot.demo.reruns import Reruns
from bot.demo.state import App, Pull, Repo, State, Token, User
from bot.demo.traffic import Traffic
from bot.demo.webhooks import Webhooks

Json = dict[str, Any]
MOST_PER_PAGE = 100


@dataclass(frozen=True)
class Parts:
    """The parts of one simulated GitHub, as the endpoints use them."""

    state: State
    traffic: Traffic
    access: Access
    hooks: Webhooks
    actions: Actions
    reruns: Reruns
    storage: SignedStore


@dataclass(frozen=True)
class Answer:
    """What an endpoint answers; `items` with `wrapped_as` is a list that the frame pages."""

    data: Any = None
    status: int = 200
    items: Sequence[Any] | None = None
    wrapped_as: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One authenticated request."""

    parts: Parts
    request: web.Request
    raw_body: bytes
    app: App | None
    token: Token | None
    maybe_repo: Repo | None

    @property
    def state(self) -> State:
        return self.parts.state

    @property
    def repo(self) -> Repo:
        if self.maybe_repo is None:
            raise ApiError(404, NOT_FOUND)
        return self.maybe_repo

    @property
    def bot(self) -> User:
        """The bot user of the calling App: the author of what it writes."""
        return self.calling_app.user

    @property
    def calling_app(self) -> App:
        if self.app is not None:
            return self.app
        return next(iter(self.state.apps.values()))

    @cached_property
    def body(self) -> Json:
        if not self.raw_body:
            return {}
        try:
            parsed = json.loads(self.raw_body)
        except ValueError as error:
            raise ApiError(400, "Problems parsing JSON") from error
        if not isinstance(parsed, dict):
            raise ApiError(422, "Invalid request.\n\nFor 'links/0/schema', data is not an object.")
        return parsed

    def number(self, name: str) -> int:
        """A number in the path.

        Raises:
            ApiError: 404 when it is none.
        """
        text = self.request.match_info[name]
        if not text.isdecimal():
            raise ApiError(404, NOT_FOUND)
        return int(text)

    def pull(self, name: str = "number") -> Pull:
        found = self.repo.pulls.get(self.number(name))
        if found is None or (found.plain_issue and "/pulls/" in self.request.path):
            raise ApiError(404, NOT_FOUND)
        return found

    def query(self, name: str) -> str | None:
        return self.request.query.get(name)


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True)
class Endpoint:
    """`needs`: any one of these permissions; empty: a token is enough."""

    method: str
    path: str
    handler: Handler
    needs: tuple[str, ...] = ()
    auth: Literal["jwt", "token"] = "token"

    def bind(self, parts: Parts) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            seen = parts.traffic.record("api", request, body)
            faulted = await parts.traffic.before(request)
            answer = faulted if faulted is not None else await self._answer(parts, request, body)
            seen.status = answer.status
            return await parts.traffic.after(request, answer)

        return handle

    async def _answer(self, parts: Parts, request: web.Request, body: bytes) -> web.Response:
        try:
            answer = await self.handler(self._call(parts, request, body))
            return render(answer, request, parts.access)
        except ApiError as error:
            return refuse(error, parts.access)

    def _call(self, parts: Parts, request: web.Request, body: bytes) -> Call:
        header = request.headers.get("Authorization", "")
        if not header:
            raise ApiError(401, "Requires authentication")
        if not request.headers.get("User-Agent"):
            raise ApiError(403, "Request forbidden by administrative rules.")
        if self.auth == "jwt":
            return Call(parts, request, body, parts.access.app_of(header), None, None)
        token = parts.access.token_of(header)
        parts.access.spend()
        repo = None
        if "owner" in request.match_info:
            name = "{owner}/{repo}".format(**request.match_info)
            if (now := parts.access.renamed.get(name)) is not None:
                raise _moved(request, name, now)
            repo = parts.access.repo_for(token, name)
        parts.access.require(token, self.needs)
        return Call(parts, request, body, parts.state.app_of_token(token), token, repo)


def _moved(request: web.Request, name: str, now: Repo) -> ApiError:
    """Send on to the present name; GitHub itself names the repository by its id there."""
    path = request.raw_path.replace(f"/repos/{name}", f"/repos/{now.full_name}", 1)
    status = 301 if request.method == "GET" else 307
    return ApiError(status, "Moved Permanently", headers={"Location": f"{request.url.origin()}{path}"})


def _headers(access: Access) -> dict[str, str]:
    return {**access.headers(), "X-GitHub-Media-Type": "github.v3; format=json", "X-GitHub-Request-Id": "SIM0"}


def refuse(error: ApiError, access: Access) -> web.Response:
    shown = {
        "message": error.message,
        **error.more,
        "documentation_url": "https://docs.github.com/rest",
        "status": str(error.status),
    }
    return web.json_response(shown, status=error.status, headers={**_headers(access), **error.headers})


def render(answer: Answer, request: web.Request, access: Access) -> web.Response:
    """The HTTP answer: paged, with an ETag, or 304 when the caller has it already (which costs nothing)."""
    headers = {**_headers(access), **answer.headers}
    data = answer.data
    if answer.items is not None:
        data, links = _page(answer, request)
        if links:
            headers["Link"] = links
    if answer.status in {204, 302}:
        return web.Response(status=answer.status, headers=headers)
    body = json.dumps(data).encode()
    if request.method == "GET" and answer.status == 200:
        tag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        headers |= {"ETag": tag, "Cache-Control": "private, max-age=60, s-maxage=60", "Vary": "Accept, Authorization"}
        if request.headers.get("If-None-Match") == tag:
            access.budget.used -= 1
            return web.Response(status=304, headers={**headers, **access.headers()})
    return web.Response(body=body, status=answer.status, headers=headers, content_type="application/json")


def _page(answer: Answer, request: web.Request) -> tuple[Any, str]:
    items = answer.items or ()
    per_page = min(_positive(request.query.get("per_page"), 30), MOST_PER_PAGE)
    page = _positive(request.query.get("page"), 1)
    last = max(-(-len(items) // per_page), 1)
    shown = list(items[(page - 1) * per_page : page * per_page])
    targets = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    useful = {"prev": page > 1, "next": page < last, "last": page < last, "first": page > 1}
    links = ", ".join(
        f'<{request.url.update_query(page=target, per_page=per_page)}>; rel="{rel}"'
        for rel, target in targets.items()
        if useful[rel]
    )
    return ({"total_count": len(items), answer.wrapped_as: shown} if answer.wrapped_as else shown), links


def _positive(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and int(text) > 0 else default
