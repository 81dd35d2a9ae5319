"""What the webhook takes, over HTTP: signed, whole and new deliveries, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.web.health import NotReadyError
from bot.web.metrics import Metrics
from bot.web.signature import is_signed
from bot.web.webhook import MAX_BODY, SLIM_IN_THREAD, Slim, Webhook
from handlers.context import Event, Repo, Task

SECRET = b"It's a Secret to Everybody"
OLD = b"the secret of last month"
Client = TestClient[web.Request, web.Application]


def test_the_vector_of_githubs_documentation() -> None:
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_signed(b"Hello, World!", signature, [SECRET])
    assert not is_signed(b"Hello, World?", signature, [SECRET])
    assert not is_signed(b"Hello, World!", signature, [])


def sign(body: bytes, secret: bytes = SECRET) -> str:
    return f"sha256={hmac.digest(secret, body, 'sha256').hex()}"


class Engine:
    """Stores tasks in memory; `away` makes it hang, `broken` fail."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.away = False
        self.broken = False

    async def accept(self, task: Task) -> bool:
        if self.away:
            await asyncio.sleep(60)
        if self.broken:
            raise OSError("disk full")
        new = task.key not in self.tasks
        self.tasks[task.key] = task
        return new


def slim(event: str, delivery_id: str, payload: Mapping[str, Any]) -> Event | None:
    if payload.get("unready"):
        raise NotReadyError
    if payload.get("malformed"):
        raise ValueError("repository.id: Field required")
    if event != "workflow_job" or payload.get("boring"):
        return None
    return Event(delivery_id, event, "completed", Repo(1, "o/r", 2), {"job_id": 3})


@asynccontextmanager
async def bot(engine: Engine, slim: Slim = slim, **limits: float) -> AsyncIterator[Client]:
    app = web.Application(client_max_size=MAX_BODY + 1)
    app.router.add_post("/webhook", Webhook([SECRET, OLD], slim, engine.accept, Metrics(), **limits).answer)
    async with TestClient(TestServer(app)) as client:
        yield client


async def deliver(client: Client, body: bytes = b"{}", **headers: str | None) -> tuple[int, str]:
    """Send a delivery; a header given as None is left out, `_` stands for `-`."""
    sent = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "workflow_job",
        "X-GitHub-Delivery": str(uuid4()),
        "X-Hub-Signature-256": sign(body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    present = {name: value for name, value in sent.items() if value is not None}
    async with client.post("/webhook", data=body, headers=present) as answer:
        return answer.status, (await answer.json())["outcome"]


GOOD = sign(b"{}")


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "",
        "sha256=",
        GOOD[:-1],
        GOOD + "0",
        GOOD.upper(),
        "sha256=" + GOOD[7:].upper(),
        GOOD[7:],
        "sha1=" + hmac.digest(SECRET, b"{}", "sha1").hex(),
        "sha256=" + "é" * 64,
        "sha256=" + "٣" * 64,
        sign(b"{}", b"another secret"),
        sign(b"{}", b""),
        sign(b"{ }"),
        f" {GOOD},{GOOD}",
    ],
)
async def test_a_bad_signature_is_refused_and_nothing_is_stored(signature: str | None) -> None:
    engine = Engine()
    sha1 = "sha1=" + hmac.digest(SECRET, b"{}", "sha1").hex()
    async with bot(engine) as client:
        assert await deliver(client, X_Hub_Signature_256=signature, X_Hub_Signature=sha1) == (401, "bad_signature")
    assert not engine.tasks


async def test_a_delivery_is_accepted_once() -> None:
    engine = Engine()
    guid = str(uuid4())
    async with bot(engine) as client:
        assert await deliver(client, X_GitHub_Delivery=guid) == (202, "accepted")
        assert await deliver(client, X_GitHub_Delivery=guid) == (202, "duplicate")
    (task,) = engine.tasks.values()
    assert (task.name, task.key, task.pull) == ("delivery", guid, None)
    assert task.data == {"event": "workflow_job", "action": "completed", "data": {"job_id": 3}}


async def test_the_secret_of_before_the_rotation_still_counts() -> None:
    async with bot(Engine()) as client:
        assert (await deliver(client, X_Hub_Signature_256=sign(b"{}", OLD)))[0] == 202


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"X_GitHub_Event": None}, (400, "no_event")),
        ({"X_GitHub_Event": "Work flow"}, (400, "no_event")),
        ({"X_GitHub_Delivery": None}, (400, "no_delivery_id")),
        ({"X_GitHub_Delivery": "x" * 200}, (400, "no_delivery_id")),
        ({"X_GitHub_Delivery": "../../etc/passwd"}, (400, "no_delivery_id")),
        ({"Content_Type": "application/x-www-form-urlencoded"}, (415, "not_json")),
        ({"Content_Type": "text/plain"}, (415, "not_json")),
        ({"X_GitHub_Event": "ping"}, (200, "pong")),
        ({"X_GitHub_Event": "star"}, (202, "ignored")),
        ({"X_GitHub_Event": "an_event_of_next_year"}, (202, "ignored")),
    ],
)
async def test_headers(headers: dict[str, str | None], expected: tuple[int, str]) -> None:
    engine = Engine()
    async with bot(engine) as client:
        assert await deliver(client, **headers) == expected
    assert not engine.tasks


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", (400, "bad_json")),
        (b"{", (400, "bad_json")),
        (b"[]", (400, "bad_json")),
        (b"\xff\xfe{}", (400, "bad_json")),
        (b"[" * 100_000, (400, "bad_json")),
        (b'{"n":' + b"9" * 5000 + b"}", (400, "bad_json")),
        (b'{"boring": true}', (202, "ignored")),
        (b'{"malformed": true}', (202, "malformed")),
        (b'{"unready": true}', (503, "not_ready")),
        (json.dumps({"pad": "x" * 900_000}).encode(), (202, "accepted")),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_bodies(body: bytes, expected: tuple[int, str]) -> None:
    async with bot(Engine()) as client:
        assert await deliver(client, body) == expected


async def test_a_body_that_is_too_large_is_cut_off() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 4 * MAX_BODY:
            sent += 1_000_000
            yield b" " * 1_000_000

    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": GOOD}
    async with bot(Engine()) as client, client.post("/webhook", data=endless(), headers=headers) as answer:
        assert answer.status == 413
    assert sent < 2 * MAX_BODY


async def test_a_body_that_cannot_be_signed_is_not_waited_for() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async with asyncio.timeout(4), bot(Engine()) as client:
        headers = {"Content-Type": "application/json", "X-Hub-Signature": "sha1=" + "0" * 40}
        async with client.post("/webhook", data=trickle(), headers=headers) as answer:
            assert answer.status == 401


async def test_a_body_that_trickles_is_given_up() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(2)
        yield b"}"

    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": GOOD}
    async with (
        bot(Engine(), read_limit_s=0.2) as client,
        client.post("/webhook", data=trickle(), headers=headers) as answer,
    ):
        assert answer.status == 408


async def test_a_database_that_is_away_means_try_again() -> None:
    engine = Engine()
    async with bot(engine, accept_limit_s=0.2) as client:
        engine.away = True
        assert await deliver(client) == (503, "busy")
        engine.away, engine.broken = False, True
        assert await deliver(client) == (503, "not_stored")
        engine.broken = False
        assert await deliver(client) == (202, "accepted")


@pytest.mark.parametrize("packed", [gzip.compress(b"{}", mtime=0), b"not packed at all"])
@pytest.mark.parametrize("signed", [True, False])
async def test_a_packed_body_is_refused_before_it_is_unpacked(packed: bytes, signed: bool) -> None:
    signature = sign(packed) if signed else GOOD
    async with bot(Engine()) as client:
        answer = await deliver(client, packed, Content_Encoding="gzip", X_Hub_Signature_256=signature)
    assert answer == (415, "encoded")


async def test_a_large_body_is_read_beside_the_loop() -> None:
    """A comment may take half a second to read; the next delivery is answered meanwhile."""
    engine, begun, go_on = Engine(), threading.Event(), threading.Event()

    def slow(event: str, delivery_id: str, payload: Mapping[str, Any]) -> Event | None:
        if payload:
            begun.set()
            go_on.wait(60)
        return slim(event, delivery_id, payload)

    async with bot(engine, slim=slow) as client:
        large = asyncio.create_task(deliver(client, json.dumps({"x": "y" * SLIM_IN_THREAD}).encode()))
        assert await asyncio.to_thread(begun.wait, 60)
        assert await deliver(client) == (202, "accepted")
        assert not large.done()
        go_on.set()
        assert await large == (202, "accepted")
