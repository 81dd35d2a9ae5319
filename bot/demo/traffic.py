"""What the App asked for, and the faults that a test orders."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

FaultKind = Literal["status", "reset", "truncate", "drip", "delay", "lost_answer", "reset_after"]


@dataclass
class RecordedRequest:
    """One request of the App, to the API or to the storage; `body` is the parsed JSON, None without one."""

    server: Literal["api", "storage"]
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int = 0


@dataclass
class Fault:
    """Something that goes wrong with the next `times` matching requests."""

    method: str
    path: re.Pattern[str]
    kind: FaultKind
    times: int = 1
    status: int = 500
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0

    def hits(self, request: web.Request) -> bool:
        return self.times > 0 and self.method in {"*", request.method} and bool(self.path.search(request.path))


class Traffic:
    """Records requests and carries out the ordered faults."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self.faults: list[Fault] = []

    def record(self, server: Literal["api", "storage"], request: web.Request, body: bytes) -> RecordedRequest:
        try:
            parsed = json.loads(body) if body else None
        except ValueError:
            parsed = body
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = RecordedRequest(server, request.method, request.path, dict(request.query), headers, parsed)
        self.requests.append(seen)
        return seen

    def _take(self, request: web.Request, kinds: set[FaultKind]) -> Fault | None:
        for fault in self.faults:
            if fault.kind in kinds and fault.hits(request):
                fault.times -= 1
                return fault
        return None

    async def before(self, request: web.Request) -> web.Response | None:
        """A fault that keeps the request from being carried out, or delays it; None: go on."""
        fault = self._take(request, {"status", "reset", "delay"})
        if fault is None:
            return None
        if fault.kind == "delay":
            await asyncio.sleep(fault.delay_s)
            return None
        if fault.kind == "reset":
            return _cut_off(request)
        text = json.dumps({"message": fault.message, "documentation_url": "https://docs.github.com/rest"})
        return web.Response(status=fault.status, text=text, content_type="application/json", headers=fault.headers)

    async def after(self, request: web.Request, answer: web.Response) -> web.StreamResponse:
        """A fault that spoils the answer of a request that was carried out."""
        fault = self._take(request, {"truncate", "drip", "lost_answer", "reset_after"})
        if fault is None:
            return answer
        if fault.kind == "lost_answer":
            return web.Response(status=fault.status, text="<html>Unicorn!</html>", content_type="text/html")
        if fault.kind == "reset_after":
            return _cut_off(request)
        body = answer.body if isinstance(answer.body, bytes) else b""
        spoiled = web.StreamResponse(status=answer.status, headers=answer.headers)
        spoiled.content_length = len(body)
        await spoiled.prepare(request)
        if fault.kind == "drip":
            return await _drip(spoiled, body, fault.delay_s)
        await spoiled.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return spoiled


def _cut_off(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


async def _drip(answer: web.StreamResponse, body: bytes, pause_s: float) -> web.StreamResponse:
    """Send byte by byte until nobody listens any more."""
    with contextlib.suppress(ConnectionError):
        for place in range(len(body)):
            await answer.write(body[place : place + 1])
            await asyncio.sleep(pause_s)
    return answer
