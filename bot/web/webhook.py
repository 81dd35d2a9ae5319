"""`POST /webhook`: verify the raw body, accept durably, answer 202. The work is done later, by the engine.

GitHub counts a delivery as failed after 10 s and never repeats it by itself, so nothing here waits for the work.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiohttp import web

from bot.foreign_json import load_foreign
from bot.store.watch import Told, not_told
from bot.web.admission import Admission, FullError
from bot.web.health import NotReadyError
from bot.web.metrics import Metrics
from bot.web.signature import is_signed, may_be_signed
from handlers.context import Event, Task

log = structlog.get_logger()

#: GitHub sends at most 25 MB.
MAX_BODY = 25 * 1024 * 1024
#: Larger bodies are parsed in a thread, so that the loop goes on answering.
PARSE_IN_THREAD = 512 * 1024
#: So are smaller ones read for what they mean: the Markdown of a comment of the greatest length can take half a second.
SLIM_IN_THREAD = 32 * 1024
READ_LIMIT_S = 9.0
#: The engine's database may be away; GitHub gives up after 10 s.
ACCEPT_LIMIT_S = 8.0
RETRY_AFTER_S = 30
DELIVERY_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{7,63}", re.ASCII)
EVENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

#: (event, delivery id, payload) -> the slimmed event, or None if it needs no work; ValueError if it is malformed.
Slim = Callable[[str, str, Mapping[str, Any]], Event | None]
#: Stores the task durably; True if it was new, False if it was there already. NotReadyError: not now.
Accept = Callable[[Task], Awaitable[bool]]


class TurnedAwayError(Exception):
    """The request is not accepted; `status` and a short reason go into the answer."""

    def __init__(self, status: int, outcome: str) -> None:
        super().__init__(outcome)
        self.status = status
        self.outcome = outcome


@dataclass(frozen=True)
class Webhook:
    """The handler of `POST /webhook`."""

    secrets: Sequence[bytes]
    slim: Slim
    accept: Accept
    metrics: Metrics
    admission: Admission = field(default_factory=Admission)
    told: Told = not_told
    read_limit_s: float = READ_LIMIT_S
    accept_limit_s: float = ACCEPT_LIMIT_S

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one delivery, and log one line about it."""
        started = time.monotonic()
        event, delivery_id = "", ""
        try:
            # Without a length it may become as large as the largest.
            with self.admission.enter(min(request.content_length or MAX_BODY, MAX_BODY)):
                body = await self._read(request)
                event, delivery_id = _headers(request)
                status, outcome = await self._take(event, delivery_id, await _parse(body), len(body))
        except FullError:
            status, outcome = 503, "full"
        except TurnedAwayError as turned:
            status, outcome = turned.status, turned.outcome
        self.metrics.deliveries.labels(event if status < 400 else "", outcome).inc()
        took_ms = round((time.monotonic() - started) * 1000, 1)
        log.info("delivery", gh_event=event, delivery=delivery_id, outcome=outcome, status=status, took_ms=took_ms)
        headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None
        return web.json_response({"outcome": outcome}, status=status, headers=headers)

    async def _read(self, request: web.Request) -> bytes:
        """Return the body once it is known to be signed. Nothing of an unsigned request is looked at or stored."""
        if request.content_type != "application/json":
            raise TurnedAwayError(415, "not_json")
        if "Content-Encoding" in request.headers:
            # aiohttp would unpack it for us, and what is signed are the bytes that were sent.
            raise TurnedAwayError(415, "encoded")
        signature = request.headers.get("X-Hub-Signature-256")
        if not may_be_signed(signature):
            # Up to 25 MB of a stranger's are not worth the wait.
            raise TurnedAwayError(401, "bad_signature")
        try:
            async with asyncio.timeout(self.read_limit_s):
                body = await request.read()
        except TimeoutError:
            raise TurnedAwayError(408, "too_slow") from None
        except web.HTTPRequestEntityTooLarge:
            raise TurnedAwayError(413, "too_large") from None
        if not is_signed(body, signature, self.secrets):
            raise TurnedAwayError(401, "bad_signature")
        return body

    async def _take(self, event: str, delivery_id: str, payload: Mapping[str, Any], size: int) -> tuple[int, str]:
        if event == "ping":
            return 200, "pong"
        try:
            work = (event, delivery_id, payload)
            slimmed = self.slim(*work) if size < SLIM_IN_THREAD else await asyncio.to_thread(self.slim, *work)
        except NotReadyError:
            return 503, "not_ready"
        except ValueError as error:
            # Sending it again would not help, so it is no failed delivery; the log says what is wrong with it.
            log.warning("delivery.malformed", gh_event=event, delivery=delivery_id, why=str(error)[:500])
            return 202, "malformed"
        if slimmed is None:
            return 202, "ignored"
        try:
            async with asyncio.timeout(self.accept_limit_s):
                new = await self.accept(delivery_task(slimmed))
        except TimeoutError:
            return 503, "busy"
        except NotReadyError:
            return 503, "not_ready"
        except Exception as error:
            # A full disk, a database that is gone: the delivery can be sent again, which 503 says.
            if not await self.told(error):
                log.exception("delivery.not_stored", gh_event=event, delivery=delivery_id)
            return 503, "not_stored"
        return 202, "accepted" if new else "duplicate"


def delivery_task(event: Event) -> Task:
    """The first piece of work of a delivery; its key makes a repeated delivery harmless."""
    data = {"event": event.event, "action": event.action, "data": event.data}
    return Task(name="delivery", repo=event.repo, key=event.delivery_id, data=data)


def _headers(request: web.Request) -> tuple[str, str]:
    event = request.headers.get("X-GitHub-Event", "")
    delivery_id = request.headers.get("X-GitHub-Delivery", "")
    if EVENT_NAME.fullmatch(event) is None:
        raise TurnedAwayError(400, "no_event")
    if DELIVERY_ID.fullmatch(delivery_id) is None:
        raise TurnedAwayError(400, "no_delivery_id")
    return event, delivery_id


async def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = load_foreign(body) if len(body) < PARSE_IN_THREAD else await asyncio.to_thread(load_foreign, body)
    except (ValueError, RecursionError):
        # ValueError: bad JSON, bad UTF-8, a number of too many digits.
        raise TurnedAwayError(400, "bad_json") from None
    if not isinstance(parsed, dict):
        raise TurnedAwayError(400, "bad_json")
    return parsed
