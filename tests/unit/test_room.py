"""The folder of downloads keeps within its size: what nobody uses goes, and when all is in use a new one waits."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from github_double import REPO, Double, Say, double, gateway, storage_double
from test_downloads import ARTIFACT, BODY, ZIP, read, to

from bot.github import shelf as shelves
from bot.github.shelf import IN_USE_S, Room, Shelf, files_folder
from handlers.context import Fetched, RateLimitedError

ANOTHER = replace(ARTIFACT, id=12, run_id=6, name="logs-b")
ANOTHER_ZIP = ZIP.replace("/11/", "/12/")


def serve_both(github: Double, storage: Double) -> None:
    github.on(ZIP, to(storage))
    github.on(ANOTHER_ZIP, to(storage))
    storage.on("GET /blob", Say(body=BODY), Say(body=BODY))


def age(folder: Path, by_s: float) -> None:
    for path in folder.rglob("*.zip"):
        os.utime(path, (time.time() - by_s, time.time() - by_s))


def lies(fetched: Fetched) -> bool:
    assert fetched.path is not None
    return Path(fetched.path).exists()


async def test_a_download_waits_while_all_that_is_there_may_be_in_use(tmp_path: Path) -> None:
    async with (
        double() as github,
        storage_double() as storage,
        gateway(github, tmp_path, room=Room(max_bytes=len(BODY) + 1000)) as made,
    ):
        serve_both(github, storage)
        files = made.for_repo(REPO)[2]
        first = await files.artifact(ARTIFACT)
        with pytest.raises(RateLimitedError) as refused:
            await files.artifact(ANOTHER)
        assert refused.value.after_s > 0
        assert read(await files.artifact(ARTIFACT)) == BODY, "what lies there is handed out all the same"
        age(files_folder(tmp_path), IN_USE_S + 1)
        assert read(await files.artifact(ANOTHER)) == BODY
        assert not lies(first), "the oldest made room"


async def test_what_is_too_old_goes_with_a_later_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "COLLECT_EVERY_S", 0)
    async with (
        double() as github,
        storage_double() as storage,
        gateway(github, tmp_path, room=Room(max_age_s=24 * 3600)) as made,
    ):
        serve_both(github, storage)
        files = made.for_repo(REPO)[2]
        first = await files.artifact(ARTIFACT)
        age(files_folder(tmp_path), 25 * 3600)
        second = await files.artifact(ANOTHER)
        assert not lies(first)
        assert read(second) == BODY


async def test_an_empty_folder_takes_any_file_and_downloads_under_way_count(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, Room(max_bytes=100))
    async with shelf.room_for(1000):
        with pytest.raises(RateLimitedError):
            async with shelf.room_for(1):
                pytest.fail("there was no room")
    shelf._measured_at = -shelves.MEASURED_S  # nothing has really come
    async with asyncio.timeout(20), shelf.room_for(50), shelf.room_for(50):
        assert shelf._coming_bytes == 100


async def test_all_who_come_at_once_count_what_is_there(tmp_path: Path) -> None:
    """As after a restart, when nothing has been measured yet."""
    there = tmp_path / "1" / "5" / "a.zip"
    there.parent.mkdir(parents=True)
    there.write_bytes(BODY)
    shelf = Shelf(tmp_path, Room(max_bytes=len(BODY) + 1000))

    async def enter() -> None:
        async with shelf.room_for(2000):
            pytest.fail("there was no room")

    refused = await asyncio.gather(*(enter() for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in refused] == [RateLimitedError] * 3
