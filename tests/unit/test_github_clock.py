"""The time as GitHub has it: no clock of ours that is wrong or set takes part in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
from structlog.typing import EventDict

from bot.github.clock import GitHubClock

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOURS = timedelta(hours=3)


class Host:
    """A host whose own clock is `off`, and a GitHub whose clock is right."""

    def __init__(self, off: timedelta = timedelta()) -> None:
        self.off = off
        self.passed_s = 0.0
        self.clock = GitHubClock(lambda: self.true() + self.off, steady=lambda: 77.0 + self.passed_s)

    def true(self) -> datetime:
        return NOON + timedelta(seconds=self.passed_s)

    def answer(self) -> None:
        self.clock.hear(format_datetime(self.true(), usegmt=True))


def test_until_github_was_heard_it_is_the_hosts_time() -> None:
    host = Host(HOURS)
    assert host.clock() == NOON + HOURS
    assert host.clock.troubles() == {}


@pytest.mark.parametrize("off", [HOURS, -HOURS, timedelta()])
def test_a_clock_that_is_set_changes_nothing(off: timedelta) -> None:
    host = Host()
    host.answer()
    host.off = off
    host.passed_s = 600
    assert host.clock() == NOON + timedelta(minutes=10)
    host.answer()
    assert host.clock() == NOON + timedelta(minutes=10)
    host.off = timedelta()
    assert host.clock() == NOON + timedelta(minutes=10)


@pytest.mark.parametrize("off", [HOURS, -HOURS])
def test_nothing_is_deleted_by_the_clock_that_is_ahead(off: timedelta) -> None:
    host = Host(off)
    host.answer()
    assert host.clock.earlier() == NOON + min(off, timedelta())


def test_a_clock_that_was_wrong_from_the_start_is_put_right_by_the_first_answer() -> None:
    host = Host(-HOURS)
    host.answer()
    assert host.clock() == NOON


def test_a_machine_that_slept_is_told_the_time_by_the_next_answer() -> None:
    host = Host()
    host.answer()
    host.clock._steady = lambda: 77.0  # it stands still while the machine sleeps
    host.passed_s = 3600
    host.answer()
    assert host.clock() == NOON + timedelta(hours=1)


def test_it_runs_evenly_though_answers_are_stamped_in_whole_seconds() -> None:
    host, times = Host(), []
    for tenth in range(100):
        host.passed_s = tenth / 10
        host.answer()
        times.append(host.clock())
    steps = {round((later - one).total_seconds(), 3) for one, later in pairwise(times)}
    assert steps == {0.1}


@pytest.mark.parametrize(
    "date", [None, "", "soon", "Tue, 01 Dec 99999 12:00:00 GMT", "Tue, 01 Dec 2026 12:00:00 +9999"]
)
def test_an_answer_without_a_time_says_nothing(date: str | None) -> None:
    host = Host(HOURS)
    host.clock.hear(date)
    assert host.clock() == NOON + HOURS


@pytest.mark.parametrize(
    "date",
    [
        "Fri, 31 Dec 9999 23:59:59 GMT",  # a second later there is no such time
        "Fri, 31 Dec 9999 23:59:59 -2300",
        "Mon, 01 Jan 0001 00:00:00 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Tue, 01 Dec 99999999999999999999 12:00:00 GMT",
        "Tue, 99999999999999999999 Dec 2026 12:00:00 GMT",
    ],
)
def test_a_time_that_cannot_be_is_not_heard_and_the_next_answer_is(date: str) -> None:
    host = Host(HOURS)
    host.answer()
    host.clock.hear(date)
    host.passed_s = 60
    assert host.clock() == NOON + timedelta(minutes=1)
    host.answer()
    assert host.clock() == NOON + timedelta(minutes=1)
    assert host.clock.ahead_s() == HOURS.total_seconds()


def test_a_wrong_clock_is_told_once_and_shown_and_so_is_its_end(said: list[EventDict]) -> None:
    host = Host()
    for off in (timedelta(), HOURS, HOURS, timedelta(), timedelta()):
        host.off = off
        host.answer()
        assert host.clock.ahead_s() == off.total_seconds()
        wrong = {"clock": "the host's clock is 180 min ahead of GitHub's"} if off else {}
        assert host.clock.troubles() == wrong
    assert [line["event"] for line in said] == ["clock.wrong", "clock.right"]
    assert said[0]["ahead_s"] == 10800
    host.off = -HOURS
    assert host.clock.troubles() == {"clock": "the host's clock is 180 min behind GitHub's"}
