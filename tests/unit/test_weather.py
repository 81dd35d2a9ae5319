"""How GitHub treats us, by episodes: one line at the begin, one at the end, and what is told meanwhile."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from structlog.typing import EventDict

from bot.github.weather import Weather

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Sky:
    """A weather with what it tells."""

    def __init__(self, *, calm_s: float = 0.05) -> None:
        self.answers: list[str] = []
        self.shown: dict[str, int] = {}
        self.weather = Weather(lambda: NOON, observe=self.answers.append, show=self.shown.__setitem__, calm_s=calm_s)


async def over(said: list[EventDict], times: int = 1) -> None:
    async with asyncio.timeout(10):
        while sum(line["event"] == "github.trouble_over" for line in said) < times:
            await asyncio.sleep(0.01)


async def test_a_trouble_that_comes_and_goes_is_one(said: list[EventDict]) -> None:
    sky = Sky()
    for _ in range(5):
        sky.weather.unreachable(ConnectionResetError("by 10.0.0.1"))
        sky.weather.answered("installation 7", ok=True)
    assert sky.weather.troubles() == {"github_unreachable": "since 2026-12-01T12:00:00+00:00: the connection broke"}
    assert sky.shown == {"unreachable": 1, "rate_limited": 0, "locked_out": 0}
    await over(said)
    assert [line["event"] for line in said] == ["github.trouble", "github.trouble_over"]
    assert "10.0.0.1" in said[0]["why"]
    assert (said[1]["calls"], said[1]["how"]) == (5, "it answers again")
    assert (sky.weather.troubles(), sky.shown["unreachable"]) == ({}, 0)
    assert sky.answers == ["unreachable", "ok"] * 5


async def test_a_limit_of_one_says_nothing_about_another_and_is_over_in_time(said: list[EventDict]) -> None:
    sky = Sky()
    sky.weather.limited("installation 7", why="403 wait", for_s=0.05)
    sky.weather.answered("installation 8", ok=True)
    assert sky.weather.troubles() == {"github_rate_limited": "installation 7 since 2026-12-01T12:00:00+00:00: 403 wait"}
    await over(said)  # nobody asked again: another process may have taken over the work
    assert said[-1]["how"] == "it was not asked again"


async def test_who_gets_no_token_is_named_and_many_are_counted(said: list[EventDict]) -> None:
    sky = Sky()
    for number in range(5):
        sky.weather.locked_out(f"installation {number}", why="403 suspended")
    told = sky.weather.troubles()["github_locked_out"]
    assert "installation 2 since" in told
    assert told.endswith("; and 2 more")
    assert sky.shown["locked_out"] == 5
    for number in range(5):
        sky.weather.let_in("the App", f"installation {number}")
    await over(said, times=5)
    assert sky.weather.troubles() == {}


async def test_a_refusal_ends_an_outage(said: list[EventDict]) -> None:
    sky = Sky()
    sky.weather.unreachable(TimeoutError())
    sky.weather.answered("installation 7", ok=False)
    await over(said)
    assert sky.answers == ["unreachable", "refused"]


async def test_a_new_name_is_told_once(said: list[EventDict]) -> None:
    sky = Sky()
    for name in ("octo-org/a", "octo-org/a", "octo-org/b"):
        sky.weather.moved(name)
    assert [line["path"] for line in said] == ["octo-org/a", "octo-org/b"]
    assert sky.answers == ["moved"] * 3


async def test_what_is_open_when_the_process_ends_stays_untold(said: list[EventDict]) -> None:
    sky = Sky(calm_s=0.0)
    sky.weather.limited("installation 7", why="403 wait", for_s=0.0)
    sky.weather.close()
    await asyncio.sleep(0.05)
    assert [line["event"] for line in said] == ["github.trouble"]
