"""The addresses that operators and probes ask, and what the log never holds."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
from collections.abc import Iterator, Mapping

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.log import configure_logging
from bot.web.health import Health
from bot.web.index import Index
from bot.web.metrics import Metrics


class Part:
    """Works, fails or hangs."""

    def __init__(self) -> None:
        self.state = "works"

    async def check(self) -> None:
        if self.state == "hangs":
            await asyncio.sleep(60)
        if self.state == "fails":
            raise ConnectionError("password=hunter2")

    async def depths(self) -> Mapping[str, int]:
        await self.check()
        return {"ENQUEUED": 4}


async def test_ready_says_what_is_wrong_and_no_details() -> None:
    part, other = Part(), Part()
    troubles: dict[str, str] = {}
    checks = {"database": part.check, "engine": other.check}
    health = Health(checks, part.depths, Metrics(), troubles=lambda: troubles, limit_s=0.2)
    app = web.Application()
    app.router.add_get("/readyz", health.ready)
    app.router.add_get("/healthz", health.alive)
    async with TestClient(TestServer(app)) as client:
        async with client.get("/readyz") as answer:
            assert (answer.status, await answer.json()) == (200, {"ready": True, "problems": {}, "degraded": {}})
        troubles["github_unreachable"] = "since noon"
        async with client.get("/readyz") as answer:
            assert (answer.status, await answer.json()) == (200, {"ready": True, "problems": {}, "degraded": troubles})
        troubles.clear()
        part.state, other.state = "fails", "hangs"
        async with client.get("/readyz") as answer:
            problems = {"database": "ConnectionError", "engine": "no answer within 0 s"}
            assert (answer.status, await answer.json()) == (
                503,
                {"ready": False, "problems": problems, "degraded": {}},
            )
        async with client.get("/healthz") as answer:
            assert answer.status == 200


async def test_metrics_are_there_even_without_the_engine() -> None:
    part, metrics = Part(), Metrics()
    metrics.deliveries.labels("workflow_job", "accepted").inc()
    app = web.Application()
    app.router.add_get("/metrics", Health({}, part.depths, metrics, limit_s=0.2).show_metrics)
    async with TestClient(TestServer(app)) as client:
        async with client.get("/metrics") as answer:
            text = await answer.text()
        assert 'mlm_deliveries_total{event="workflow_job",outcome="accepted"} 1.0' in text
        assert 'mlm_queue_depth{state="enqueued"} 4.0' in text
        part.state = "hangs"
        async with client.get("/metrics") as answer:
            text = await answer.text()
        assert "mlm_deliveries_total" in text
        assert "mlm_queue_depth{" not in text


def test_what_the_alerts_ask_for_is_there_before_it_happens() -> None:
    text = str(Metrics().render().body)
    for outcome in ("full", "busy", "not_stored", "bad_signature"):
        assert f'mlm_deliveries_total{{event="",outcome="{outcome}"}} 0.0' in text
    for what in ("redelivered", "put_off"):
        assert f'mlm_sweep_total{{what="{what}"}} 0.0' in text


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        (None, {}, 404),
        ("the-viewers-token", {}, 401),
        ("the-viewers-token", {"Authorization": "Bearer wrong"}, 401),
        ("the-viewers-token", {"Authorization": "Basic !!!"}, 401),
        ("the-viewers-token", {"Authorization": "Bearer the-viewers-token"}, 200),
        ("the-viewers-token", {"Authorization": "Basic " + base64.b64encode(b"me:the-viewers-token").decode()}, 200),
    ],
)
async def test_the_index_is_closed(token: str | None, headers: dict[str, str], status: int) -> None:
    app = web.Application()
    app.router.add_get("/", Index(token).show)
    async with TestClient(TestServer(app)) as client, client.get("/", headers=headers) as answer:
        assert answer.status == status


async def answer_to(client: TestClient[web.Request, web.Application], request: bytes) -> bytes:
    """The first line of the answer to what no client would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    writer.write(request)
    async with asyncio.timeout(30):
        line = await reader.readline()
    writer.close()
    return line


@pytest.mark.parametrize("kind", [b"Bearer", b"Basic", b"bearer"])
async def test_a_token_that_is_no_text_is_a_wrong_one(kind: bytes) -> None:
    app = web.Application()
    app.router.add_get("/", Index("the-viewers-token").show)
    async with TestClient(TestServer(app)) as client:
        request = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: " + kind + b" \xff\xfe\r\n\r\n"
        assert await answer_to(client, request) == b"HTTP/1.1 401 Unauthorized\r\n"


@pytest.mark.parametrize(
    "request_", [b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"]
)
async def test_who_sends_no_request_leaves_no_traceback(written: io.StringIO, request_: bytes) -> None:
    async def fail(_: web.Request) -> web.Response:
        raise LookupError("a fault of ours")

    app = web.Application()
    app.router.add_get("/", fail)
    async with TestClient(TestServer(app)) as client:
        assert b" 400 " in await answer_to(client, request_)
        assert written.getvalue() == ""
        async with client.get("/") as answer:
            assert answer.status == 500
    assert "a fault of ours" in written.getvalue()


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("json", secrets=["whsec-very-secret-value", "-----BEGIN X-----"], stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_a_log_line_is_json_without_secrets(written: io.StringIO) -> None:
    secrets = [
        "whsec-very-secret-value",
        "ghs_123456_eyJhbGciOi.JIUzI1NiJ9.abcDEF-123",
        "ghp_0123456789abcdef0123456789abcdef0123",
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjF9.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ]
    log = structlog.get_logger()
    log.info("a.line", nested={"deep": [f"x {secret} y" for secret in secrets]}, url="https://bot:pass1234@host/x")
    try:
        int(f"token {secrets[1]}")
    except ValueError:
        log.exception("an.error")
    logging.getLogger("dbos").warning("library says %s", secrets[2])
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["event"] for line in lines[:2]] == ["a.line", "an.error"]
    assert "ValueError" in lines[1]["exception"]
    assert all("timestamp" in line and "level" in line for line in lines)
    for secret in [*secrets, "pass1234"]:
        assert secret not in written.getvalue()
    assert "MIIE" not in written.getvalue()
