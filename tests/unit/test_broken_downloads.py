"""Downloads that go wrong midway: what is not the rest of a file, a disk that gets full, a caller who gives up."""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from fakes import make_job
from github_double import BASE, Double, Say, storage_double

from bot.github import downloads
from bot.github.storage import TRIES
from handlers.context import Files

BODY = os.urandom(90_000)
JOB = make_job()
LOG = f"GET {BASE}/actions/jobs/{JOB.id}/logs"


@pytest.fixture
async def storage(github: Double) -> AsyncIterator[Double]:
    async with storage_double() as running:
        github.always(LOG, Say(302, headers={"Location": f"{running.url}/blob?s=1"}))
        yield running


async def log_of(files: Files) -> bytes:
    fetched = await files.job_log(JOB)
    assert fetched.path is not None, fetched.why
    return await asyncio.to_thread(Path(fetched.path).read_bytes)


#: What a storage may send when asked for the rest of a log: the body that should come, and what it says of itself.
RESTS: dict[str, Callable[[bytes, int], Say]] = {
    "a part of the rest": lambda body, at: rest(body, at, last=at + 99),
    "less than it says": lambda body, at: replace(rest(body, at), body=body[at : at + 99]),
    "more than it says": lambda body, at: replace(rest(body, at), body=body[at:] + b"more"),
    "packed once more": lambda body, at: replace(
        rest(body, at), body=gzip.compress(body[at:]), headers={**rest(body, at).headers, "Content-Encoding": "gzip"}
    ),
    "no word of which part": lambda body, at: replace(rest(body, at), headers={"ETag": '"e"'}),
}


def rest(body: bytes, at: int, *, last: int | None = None) -> Say:
    last = len(body) - 1 if last is None else last
    headers = {"ETag": '"e"', "Content-Range": f"bytes {at}-{last}/{len(body)}"}
    return Say(206, body=body[at : last + 1], headers=headers)


@pytest.mark.parametrize("said", RESTS)
async def test_what_is_not_the_rest_does_not_pass_for_it(storage: Double, files: Files, said: str) -> None:
    """A log has no digest that would tell."""
    storage.on("GET /blob", Say(body=BODY, headers={"ETag": '"e"'}, cut_after=30_000))
    storage.on("GET /blob", lambda request: RESTS[said](BODY, begin_of(request)))
    storage.always("GET /blob", lambda r: rest(BODY, begin_of(r)) if "Range" in r.headers else Say(body=BODY))
    assert await log_of(files) == BODY


def begin_of(request: web.Request) -> int:
    return int(request.headers["Range"].removeprefix("bytes=").split("-")[0])


@pytest.mark.parametrize(("step", "comes"), [(10_000, True), (1_500, False)])
async def test_tries_that_bring_it_forward_do_not_count(
    storage: Double, files: Files, monkeypatch: pytest.MonkeyPatch, step: int, *, comes: bool
) -> None:
    monkeypatch.setattr(downloads, "PROGRESS_BYTES", 10_000)
    headers = {"ETag": '"e"'}

    def breaks(request: web.Request) -> Say:
        if "Range" not in request.headers:
            return Say(body=BODY, headers=headers, cut_after=step)
        said = rest(BODY, begin_of(request))
        return replace(said, cut_after=step) if len(said.body or b"") > step else said

    storage.always("GET /blob", breaks)
    assert (await files.job_log(JOB)).why == (
        "" if comes else "could not be downloaded: the connection broke (ClientPayloadError)"
    )
    assert (len(storage.asked) > TRIES) == comes


async def test_what_starts_over_each_time_is_given_up(
    storage: Double, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came as far before: that is no progress."""
    monkeypatch.setattr(downloads, "PROGRESS_BYTES", 10_000)
    storage.always("GET /blob", Say(body=BODY, cut_after=50_000))
    assert (await files.job_log(JOB)).why.startswith("could not be downloaded: ")
    assert len(storage.asked) == TRIES


async def test_a_log_that_comes_packed_is_not_gone_on_with(storage: Double, files: Files) -> None:
    """Where it broke is counted in bytes of the log, the rest would be counted in packed ones."""
    packed = gzip.compress(BODY)
    headers = {"ETag": '"e"', "Content-Encoding": "gzip"}
    storage.on("GET /blob", Say(body=packed, headers=headers, cut_after=60_000))
    storage.always(
        "GET /blob",
        lambda r: rest(packed, begin_of(r)) if "Range" in r.headers else Say(body=packed, headers=headers),
    )
    assert await log_of(files) == BODY


async def test_a_disk_that_gets_full_midway_is_told_and_cleared(storage: Double, files: Files, tmp_path: Path) -> None:
    storage.on("GET /blob", Say(body=bytes(9_000_000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000_000, before[1]))
    try:
        fetched = await files.job_log(JOB)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert fetched.why == "could not be stored: File too large"
    assert list((tmp_path / "files").rglob("*.*")) == []


async def test_a_log_that_was_thrown_away_has_no_end(storage: Double, files: Files) -> None:
    storage.on("GET /blob", Say(body=BODY[:-3] + b"end"))
    fetched = await files.job_log(JOB)
    assert fetched.path is not None
    assert await files.tail(fetched, max_bytes=3) == "end"
    await asyncio.to_thread(Path(fetched.path).unlink)
    assert await files.tail(fetched) == ""
