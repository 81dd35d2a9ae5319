"""A GitHub that answers by script, over real HTTP: for the odd answers that a healthy one never gives.

Every request must be expected: one that is not gets 500 and fails the test at the end.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bot.github.gateway import Connection, Gateway, Limits
from handlers.context import Repo

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
APP_ID = 4711
SECRET = "a secret of more than twenty letters"
REPO = Repo(id=99, full_name="octo-org/Megatron-LM", installation_id=7)
BASE = "/repos/octo-org/Megatron-LM"


@dataclass(frozen=True)
class Say:
    """One scripted answer."""

    status: int = 200
    data: Any = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False  # close the connection instead of answering
    #: Announce the whole body, send so many bytes, hang up; if that is all of it, its end is what nobody hears of.
    cut_after: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True)
class Asked:
    method: str
    path: str  # as it was on the wire, with its query
    headers: dict[str, str]
    data: Any


Script = Say | Callable[[web.Request], Say]


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 12, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **by: float) -> None:
        self.time += timedelta(**by)


class Double:
    """`on` says how requests are answered; the last answer of a list is given again and again if `forever`."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.unexpected: list[str] = []
        self.clock = Clock()
        self.tokens_issued = 0
        self._scripts: dict[str, deque[Script]] = defaultdict(deque)
        self._forever: dict[str, Script] = {}
        self.url = ""

    def on(self, request: str, *answers: Script) -> None:
        self._scripts[request].extend(answers)

    def always(self, request: str, answer: Script) -> None:
        self._forever[request] = answer

    def requests(self, start: str) -> list[Asked]:
        return [asked for asked in self.asked if f"{asked.method} {asked.path}".startswith(start)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        data = json.loads(raw) if raw else None
        self.asked.append(Asked(request.method, request.raw_path, dict(request.headers), data))
        for name in (f"{request.method} {request.raw_path}", f"{request.method} {request.raw_path.split('?')[0]}"):
            if self._scripts[name]:
                return await self._answer(request, self._scripts[name].popleft())
            if name in self._forever:
                return await self._answer(request, self._forever[name])
        self.unexpected.append(f"{request.method} {request.raw_path}")
        return web.json_response({"message": "unexpected"}, status=418)

    async def _answer(self, request: web.Request, script: Script) -> web.StreamResponse:
        said = script if isinstance(script, Say) else script(request)
        await asyncio.sleep(said.delay_s)
        assert request.transport is not None
        if said.hang_up:
            request.transport.abort()
            raise asyncio.CancelledError
        if said.cut_after is not None:
            body = said.body or b""
            response = web.StreamResponse(status=said.status, headers=said.headers)
            if said.cut_after < len(body):
                response.content_length = len(body)
            await response.prepare(request)
            await response.write(body[: said.cut_after])
            await asyncio.sleep(0.05)
            request.transport.abort()
            return response
        if said.body is not None:
            return web.Response(status=said.status, body=said.body, headers=said.headers)
        if said.data is None:
            return web.Response(status=said.status, headers=said.headers)
        return web.json_response(said.data, status=said.status, headers=said.headers)

    def issue_token(self, request: web.Request) -> Say:
        """Check the App's signature and issue the next token."""
        signed = request.headers["Authorization"].split()[1]
        by_our_clock = {"verify_exp": False, "verify_iat": False}
        claims = jwt.decode(signed, KEY.public_key(), algorithms=["RS256"], options=by_our_clock)
        assert claims["iss"] == str(APP_ID)
        assert claims["iat"] < self.clock().timestamp() < claims["exp"] <= claims["iat"] + 600
        self.tokens_issued += 1
        expires_at = (self.clock() + timedelta(hours=1)).isoformat()
        return Say(201, {"token": f"ghs_4711_{self.tokens_issued}.a.b", "expires_at": expires_at})


async def _serve(handler: Any) -> tuple[web.ServerRunner, str]:
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


@asynccontextmanager
async def double() -> AsyncIterator[Double]:
    """Run a double that knows our App and issues tokens; fail if it was asked anything unexpected."""
    github = Double()
    runner, github.url = await _serve(github.handle)
    github.always("GET /app", Say(data={"id": APP_ID, "slug": "mlm-bot"}))
    github.always("POST /app/installations/7/access_tokens", github.issue_token)
    try:
        yield github
    finally:
        await runner.cleanup()
    assert github.unexpected == []


@asynccontextmanager
async def storage_double() -> AsyncIterator[Double]:
    """Run a storage that knows nobody, on a port of its own."""
    storage = Double()
    runner, storage.url = await _serve(storage.handle)
    try:
        yield storage
    finally:
        await runner.cleanup()
    assert storage.unexpected == []


@asynccontextmanager
async def gateway(github: Double, data_dir: Path, *, prefix: str = "", **limits: Any) -> AsyncIterator[Gateway]:
    quick: dict[str, Any] = {"write_pause_s": 0.0, "retry_pause_s": 0.01, "log_pause_s": 0.01}
    connection = Connection(github.url + prefix, APP_ID, PEM, (SECRET,))
    async with aiohttp.ClientSession() as session:
        made = Gateway(session, connection, data_dir=data_dir, clock=github.clock, limits=Limits(**{**quick, **limits}))
        await made.start()
        try:
            yield made
        finally:
            await made.close()
