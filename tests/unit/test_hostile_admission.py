"""A flood of deliveries takes no memory: what there is no room for is turned away, and may come again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from test_webhook import Engine, bot, deliver, sign

from bot.web.admission import Admission, FullError
from bot.web.webhook import MAX_BODY


def test_room_is_given_back() -> None:
    room = Admission(most_requests=2, most_bytes=100, small_bytes=10)
    with room.enter(60):
        with pytest.raises(FullError), room.enter(41):
            pass
        with room.enter(40), pytest.raises(FullError), room.enter(0):
            pass
        with room.enter(10):
            assert (room.requests, room.bytes) == (2, 60), "a small one takes a place, and none of the large ones' room"
    assert (room.requests, room.bytes) == (0, 0)
    with room.enter(1000):
        assert room.bytes == 1000, "one alone is always let in"
    with pytest.raises(ZeroDivisionError), room.enter(1):
        raise ZeroDivisionError
    assert (room.requests, room.bytes) == (0, 0)


async def test_too_many_at_once_are_turned_away_with_a_time_to_come_back() -> None:
    engine = Engine()
    engine.away = True
    async with bot(engine, admission=Admission(most_requests=3), accept_limit_s=0.5) as client:  # type: ignore[arg-type]
        answers = await asyncio.gather(*(deliver(client) for _ in range(10)))
        assert sorted(answers) == [(503, "busy")] * 3 + [(503, "full")] * 7
        engine.away = False
        assert await deliver(client) == (202, "accepted")
        async with client.post(
            "/webhook", data=b"{}", headers={"Content-Type": "application/json", "X-Hub-Signature-256": sign(b"{}")}
        ) as answer:
            assert answer.status == 400, "room for the next one"


async def test_large_bodies_share_a_bound() -> None:
    """Two are in hand; a third one would be too much, before any of it is read."""
    engine = Engine()
    engine.away = True
    body = b'{"x": "' + b" " * 900_000 + b'"}'
    async with bot(engine, admission=Admission(most_bytes=2_000_000), accept_limit_s=0.5) as client:  # type: ignore[arg-type]
        answers = await asyncio.gather(*(deliver(client, body) for _ in range(6)))
    assert sorted(answers) == [(503, "busy")] * 2 + [(503, "full")] * 4


async def test_bodies_that_are_only_announced_shut_nobody_out() -> None:
    """Strangers announce as much as may be in hand and send nothing; a delivery of the usual size is taken."""

    async def nothing() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": sign(b"{}", b"not the secret")}
    admission = Admission(most_bytes=2 * MAX_BODY)
    async with bot(Engine(), admission=admission) as client:  # type: ignore[arg-type]
        strangers = [asyncio.create_task(client.post("/webhook", data=nothing(), headers=headers)) for _ in range(4)]
        async with asyncio.timeout(60):
            while admission.requests < 2:
                await asyncio.sleep(0.01)
        assert await deliver(client, b'{"x": "' + b" " * 40_000 + b'"}') == (202, "accepted")
        for stranger in strangers:
            stranger.cancel()
        await asyncio.gather(*strangers, return_exceptions=True)
