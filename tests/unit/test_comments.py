"""The one comment per key, against a small GitHub conversation over HTTP that can fail in the middle of a write."""

import asyncio
import re
from typing import Any

import pytest
from aiohttp import web
from github_double import APP_ID, BASE, REPO, SECRET, Double, Say

from bot.github.comments import Marker
from bot.github.gateway import Gateway
from handlers.context import Comments, RefusedError

LIST = f"{BASE}/issues/42/comments"
US = {"id": 2, "login": "mlm-bot[bot]", "type": "Bot"}
APP = {"id": APP_ID, "slug": "mlm-bot"}
MARKED = Marker([SECRET]).write(REPO.id, 42, "report")


class Conversation:
    """The comments of pull request 42, answered from a list of rows."""

    def __init__(self, github: Double) -> None:
        self.github = github
        self.rows: list[dict[str, Any]] = []
        self.next_id = 1
        github.always(f"GET {LIST}?per_page=100", lambda _: Say(data=self.rows))
        github.always(f"POST {LIST}", self.create)

    def write(self, body: str, *, user: dict[str, Any] | None = US, app: dict[str, Any] | None = APP) -> int:
        number, self.next_id = self.next_id, self.next_id + 1
        row = {
            "id": number,
            "body": body,
            "user": user,
            "performed_via_github_app": app,
            "created_at": "2026-12-01T12:00:00Z",
            "html_url": f"https://github.example/{number}",
        }
        self.rows.append(row)
        self.github.always(f"PATCH {BASE}/issues/comments/{number}", lambda _: self.edit(row))
        self.github.always(f"DELETE {BASE}/issues/comments/{number}", lambda _: self.delete(row))
        return number

    def create(self, _: web.Request) -> Say:
        self.write(self.github.asked[-1].data["body"])
        return Say(201, self.rows[-1])

    def create_and_fail(self, request: web.Request) -> Say:
        self.create(request)
        return Say(502)

    def edit(self, row: dict[str, Any]) -> Say:
        if row not in self.rows:
            return Say(404, {"message": "Not Found"})
        row["body"] = self.github.asked[-1].data["body"]
        return Say(200, row)

    def delete(self, row: dict[str, Any]) -> Say:
        self.rows.remove(row)
        return Say(204)

    def writes(self) -> list[str]:
        return [asked.method for asked in self.github.asked if asked.method != "GET" and asked.path.startswith(BASE)]


@pytest.fixture
def talk(github: Double) -> Conversation:
    return Conversation(github)


@pytest.fixture
def comments(made: Gateway) -> Comments:
    return made.for_repo(REPO)[1]


async def test_created_once_then_edited_and_left_alone_when_it_says_the_same(
    talk: Conversation, comments: Comments
) -> None:
    assert await comments.find(42, key="report") is None
    first = await comments.upsert(42, key="report", body="red")
    again = await comments.upsert(42, key="report", body="red")
    edited = await comments.upsert(42, key="report", body="green")
    found = await comments.find(42, key="report")
    assert talk.writes() == ["POST", "PATCH"]
    assert found is not None
    assert first.id == again.id == edited.id == found.id
    assert (found.author, found.author_id, found.app_id) == ("mlm-bot[bot]", 2, APP_ID)
    hidden, shown = talk.rows[0]["body"].split("\n", 1)
    assert re.fullmatch(r"<!-- mlm-bot:report:[0-9a-f]{32} -->", hidden)
    assert shown == "green"


async def test_github_may_change_line_ends_without_a_needless_edit(talk: Conversation, comments: Comments) -> None:
    talk.write(f"{MARKED}\r\none\r\ntwo")
    await comments.upsert(42, key="report", body="one\ntwo\n")
    assert talk.writes() == []


@pytest.mark.parametrize(
    ("body", "user", "app"),
    [
        (f"{MARKED}\nforged", {"id": 9, "login": "mallory", "type": "User"}, None),
        (f"{MARKED}\nthrough our own App", {"id": 9, "login": "mallory", "type": "User"}, APP),
        (f"{MARKED}\nby another bot", {"id": 8, "login": "other[bot]", "type": "Bot"}, {"id": 1, "slug": "other"}),
        (f"{MARKED}\nby nobody", None, None),
        ("<!-- mlm-bot:report:00000000000000000000000000000000 -->\nours, not signed", US, APP),
        (Marker([SECRET]).write(REPO.id, 41, "report") + "\nof another pull request", US, APP),
        (Marker([SECRET]).write(1, 42, "report") + "\nof another repository", US, APP),
        (f"quoted: {MARKED}\nnot first", US, APP),
    ],
)
async def test_a_comment_that_is_not_ours_is_neither_trusted_nor_touched(
    talk: Conversation, comments: Comments, body: str, user: dict[str, Any] | None, app: dict[str, Any] | None
) -> None:
    talk.write(body, user=user, app=app)
    assert await comments.find(42, key="report") is None
    await comments.upsert(42, key="report", body="mine")
    assert talk.writes() == ["POST"]
    assert talk.rows[0]["body"] == body


async def test_a_server_that_names_no_app_knows_us_by_our_account(talk: Conversation, comments: Comments) -> None:
    number = talk.write(f"{MARKED}\nold", app=None)
    assert (await comments.upsert(42, key="report", body="new")).id == number


async def test_a_create_that_failed_after_it_worked_leaves_one_comment(
    github: Double, talk: Conversation, comments: Comments
) -> None:
    github.on(f"POST {LIST}", talk.create_and_fail)
    await comments.upsert(42, key="report", body="red")
    assert talk.writes() == ["POST"]
    assert len(talk.rows) == 1


@pytest.mark.parametrize("trouble", [Say(502), Say(hang_up=True)])
async def test_a_create_that_failed_is_done_again(
    github: Double, talk: Conversation, comments: Comments, trouble: Say
) -> None:
    github.on(f"POST {LIST}", trouble)
    await comments.upsert(42, key="report", body="red")
    assert talk.writes() == ["POST", "POST"]
    assert len(talk.rows) == 1


async def test_twins_are_reduced_to_the_oldest(talk: Conversation, comments: Comments) -> None:
    other = talk.write("somebody says hello", user={"id": 9, "login": "octocat", "type": "User"}, app=None)
    oldest = talk.write(f"{MARKED}\none")
    talk.write(f"{MARKED}\ntwo")
    talk.write(f"{MARKED}\nthree")
    await comments.upsert(42, key="report", body="new")
    assert [row["id"] for row in talk.rows] == [other, oldest]
    assert talk.rows[1]["body"] == f"{MARKED}\nnew"


async def test_two_at_once_write_one_comment(made: Gateway, talk: Conversation) -> None:
    both = [made.for_repo(REPO)[1] for _ in range(2)]
    await asyncio.gather(*(one.upsert(42, key="report", body="red") for one in both))
    assert talk.writes() == ["POST"]


async def test_a_comment_deleted_under_our_hands_is_written_anew(
    github: Double, talk: Conversation, comments: Comments
) -> None:
    number = talk.write(f"{MARKED}\nold")
    row = talk.rows[0]

    def vanish(_: web.Request) -> Say:
        talk.rows.remove(row)
        return Say(404, {"message": "Not Found"})

    github.on(f"PATCH {BASE}/issues/comments/{number}", vanish)
    assert (await comments.upsert(42, key="report", body="new")).id == number + 1


async def test_a_locked_conversation_is_a_final_no(github: Double, talk: Conversation, comments: Comments) -> None:
    github.on(f"POST {LIST}", Say(403, {"message": "Unable to create comment because issue is locked."}))
    with pytest.raises(RefusedError, match="locked"):
        await comments.upsert(42, key="report", body="red")
    assert talk.writes() == ["POST"]


async def test_a_body_that_github_would_refuse_is_never_sent(talk: Conversation, comments: Comments) -> None:
    room = 65_536 - len(MARKED) - 1
    await comments.upsert(42, key="report", body="x" * room)
    with pytest.raises(ValueError, match="65537 characters"):
        await comments.upsert(42, key="report", body="x" * (room + 1))
    with pytest.raises(ValueError, match="not a key"):
        await comments.upsert(42, key="a --> b", body="x")
    assert talk.writes() == ["POST"]


def test_a_new_secret_still_knows_the_comments_of_the_old_one() -> None:
    rotated = Marker(["a new secret of many letters", SECRET])
    assert rotated.write(REPO.id, 42, "report") != MARKED
    assert rotated.reads(f"{MARKED}\ntext", REPO.id, 42, "report")
    assert not Marker(["a new secret of many letters"]).reads(f"{MARKED}\ntext", REPO.id, 42, "report")
