"""Our check run against a GitHub that breaks off in the middle: one check run, and each remark on it once."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from github_double import APP_ID, BASE, REPO, Double, Say

from bot.github.checks import NAME
from bot.github.gateway import Gateway
from handlers.check_view import Annotation, CheckView

SHA = "a" * 40
REMARKS = tuple(Annotation("megatron/a.py", line, "failed here", "1 != 2") for line in range(1, 121))


class CheckRuns:
    """The check runs of one commit, with the remarks that each was given."""

    def __init__(self, github: Double) -> None:
        self.github = github
        self.remarks: dict[int, list[int]] = {}
        self.known_as = ""
        github.always(f"GET {BASE}/commits/{SHA}/check-runs", lambda _: Say(data={"check_runs": self.rows()}))
        github.always(f"POST {BASE}/check-runs", self.create)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "id": check_id,
                "name": NAME,
                "external_id": self.known_as,
                "app": {"id": APP_ID, "slug": "mlm-bot"},
                "output": {"annotations_count": len(lines)},
            }
            for check_id, lines in self.remarks.items()
        ]

    def create(self, _: web.Request) -> Say:
        check_id = len(self.remarks) + 1
        self.remarks[check_id] = []
        self.known_as = self.github.asked[-1].data["external_id"]
        self.github.always(f"PATCH {BASE}/check-runs/{check_id}", lambda _: self.edit(check_id))
        return Say(201, self.edit(check_id).data)

    def edit(self, check_id: int) -> Say:
        given = self.github.asked[-1].data["output"].get("annotations", [])
        self.remarks[check_id] += [one["start_line"] for one in given]
        return Say(200, self.rows()[check_id - 1])


@pytest.fixture
def there(github: Double) -> CheckRuns:
    return CheckRuns(github)


def view() -> CheckView:
    return CheckView(SHA, "1 job failed", "text", external_id="5:1:x", annotations=REMARKS)


async def test_more_remarks_than_one_request_takes(there: CheckRuns, made: Gateway) -> None:
    await made.for_repo(REPO)[3].publish(view())
    assert there.remarks == {1: list(range(1, 121))}
    await made.for_repo(REPO)[3].publish(view())
    assert there.remarks == {1: list(range(1, 121))}


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("request_number", [0, 1, 2])
async def test_a_request_that_breaks_off(
    there: CheckRuns, github: Double, made: Gateway, request_number: int, carried_out: bool
) -> None:
    def break_off(request: web.Request) -> Say:
        if carried_out:
            there.create(request) if not request_number else there.edit(1)
        return Say(502)

    if request_number:
        through = [lambda _: there.edit(1)] * (request_number - 1)
        github.on(f"PATCH {BASE}/check-runs/1", *through, break_off)
    else:
        github.on(f"POST {BASE}/check-runs", break_off)
    await made.for_repo(REPO)[3].publish(view())
    assert there.remarks == {1: list(range(1, 121))}
