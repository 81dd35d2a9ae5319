"""A flood of deliveries takes no memory: what there is no room for is turned away, and may come again."""

from __future__ import annotations

import asyncio

import pytest
from test_webhook import Engine, bot, deliver, sign

from bot.web.admission import Admission, FullError


def test_room_is_given_back() -> None:
    room = Admission(most_requests=2, most_bytes=100)
    with room.enter(60):
        with pytest.raises(FullError), room.enter(41):
            pass
        with room.enter(40), pytest.raises(FullError), room.enter(0):
            pass
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
