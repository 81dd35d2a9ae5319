"""Downloads through a redirect to a storage on another port, over HTTP: broken, hostile, expired and shared ones."""

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from github_double import BASE, REPO, Clock, Double, Say, gateway, storage_double

from bot.github.gateway import Gateway
from bot.github.hosts import DownloadHosts, ForbiddenHostError, PublicResolver
from bot.github.shelf import Room, collect
from bot.github.storage import DownloadError, parse_url
from handlers.context import Artifact, Fetched, Files, Job, RateLimitedError

BODY = os.urandom(300_000)
DIGEST = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
START = Clock().time
ARTIFACT = Artifact(
    id=11, run_id=5, name="logs-a", size_bytes=len(BODY), created_at=START, expired=False, digest=DIGEST
)
JOB = Job(
    id=21,
    run_id=5,
    attempt=1,
    name="unit",
    status="completed",
    conclusion="failure",
    head_sha="0" * 40,
    runner_labels=(),
    started_at=START,
    completed_at=START,
    html_url="",
)
ZIP = f"GET {BASE}/actions/artifacts/11/zip"
LOG = f"GET {BASE}/actions/jobs/21/logs"


@pytest.fixture
async def storage() -> AsyncIterator[Double]:
    async with storage_double() as running:
        yield running


@pytest.fixture
async def made(github: Double, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with gateway(github, tmp_path, max_artifact_bytes=1_000_000, max_log_bytes=100_000) as built:
        yield built


@pytest.fixture
def files(made: Gateway) -> Files:
    return made.for_repo(REPO)[2]


def to(storage: Double, signature: str = "s=1") -> Say:
    return Say(302, headers={"Location": f"{storage.url}/blob?{signature}"})


def read(fetched: Fetched) -> bytes:
    assert fetched.path is not None
    return Path(fetched.path).read_bytes()


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_the_token_never_reaches_the_storage(github: Double, storage: Double, files: Files) -> None:
    github.on(ZIP, to(storage, "sig=a%2Fb%2Bc"))
    storage.on("GET /blob", Say(body=BODY))
    fetched = await files.artifact(ARTIFACT)
    assert (fetched.name, fetched.why, read(fetched)) == ("logs-a", "", BODY)
    asked = storage.asked[0]
    assert asked.path == "/blob?sig=a%2Fb%2Bc"
    assert not {"authorization", "cookie"} & {name.lower() for name in asked.headers}
    assert github.requests(ZIP)[0].headers["Accept"] == "application/vnd.github+json"


async def test_one_download_serves_all_who_ask(github: Double, storage: Double, files: Files, made: Gateway) -> None:
    github.on(ZIP, to(storage))
    storage.on("GET /blob", Say(body=BODY, delay_s=0.1))
    other = made.for_repo(REPO)[2]
    got = await asyncio.gather(files.artifact(ARTIFACT), other.artifact(ARTIFACT), files.artifact(ARTIFACT))
    got.append(await other.artifact(ARTIFACT))  # and later, too
    assert len({fetched.path for fetched in got}) == 1
    assert len(storage.asked) == 1


async def test_whoever_gives_up_does_not_end_the_download_of_others(
    github: Double, storage: Double, files: Files
) -> None:
    github.on(ZIP, to(storage))
    storage.on("GET /blob", Say(body=BODY, delay_s=0.3))
    impatient = asyncio.create_task(files.artifact(ARTIFACT))
    patient = asyncio.create_task(files.artifact(ARTIFACT))
    await asyncio.sleep(0.1)
    impatient.cancel()
    assert (await patient).path is not None


async def test_a_broken_download_goes_on_where_it_broke_with_a_new_url(
    github: Double, storage: Double, files: Files
) -> None:
    def rest(request: web.Request) -> Say:
        start = int(request.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        assert 0 < start < len(BODY)
        part = f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"
        return Say(206, body=BODY[start:], headers={"Content-Range": part, "ETag": '"e"'})

    github.on(ZIP, to(storage, "s=1"), to(storage, "s=2"), to(storage, "s=3"))
    storage.on("GET /blob?s=1", Say(body=BODY, cut_after=200_000, headers={"ETag": '"e"'}))
    storage.on("GET /blob?s=2", Say(403, body=b"expired"))
    storage.on("GET /blob?s=3", rest)
    fetched = await files.artifact(ARTIFACT)
    assert read(fetched) == BODY
    assert storage.asked[2].headers["If-Range"] == '"e"'


async def test_a_storage_without_ranges_starts_over(github: Double, storage: Double, files: Files) -> None:
    github.always(ZIP, to(storage))
    cut = Say(body=BODY, cut_after=200_000)
    storage.on("GET /blob", cut, Say(416), cut, Say(body=BODY))
    fetched = await files.artifact(ARTIFACT)
    assert read(fetched) == BODY


async def test_a_download_that_breaks_behind_its_last_byte_is_whole(
    github: Double, storage: Double, files: Files
) -> None:
    """Its digest says so; asked for the rest, the storage would refuse, and all would come again."""
    github.always(ZIP, to(storage))
    storage.on("GET /blob", Say(body=BODY, cut_after=len(BODY), headers={"ETag": '"e"'}))
    assert read(await files.artifact(ARTIFACT)) == BODY


async def test_another_content_than_announced_is_not_kept(
    github: Double, storage: Double, files: Files, tmp_path: Path
) -> None:
    github.always(ZIP, to(storage))
    storage.always("GET /blob", Say(body=b"other"))
    fetched = await files.artifact(ARTIFACT)
    assert fetched.path is None
    assert "SHA-256 differs" in fetched.why
    assert len(storage.asked) == 2
    assert leftovers(tmp_path) == []


async def test_a_file_that_says_it_is_small_is_cut_off(github: Double, storage: Double, files: Files) -> None:
    github.always(ZIP, to(storage))
    storage.on("GET /blob", Say(body=b"x" * 1_000_001))
    fetched = await files.artifact(replace(ARTIFACT, digest=None))
    assert fetched.path is None
    assert fetched.why == "has 976.6 KiB, more than the 976.6 KiB that are read"


async def test_what_is_known_to_be_of_no_use_is_not_asked_for(github: Double, files: Files) -> None:
    large = await files.artifact(replace(ARTIFACT, size_bytes=3 * 1024**3))
    gone = await files.artifact(replace(ARTIFACT, expired=True, expires_at=START))
    assert large.why == "has 3.0 GiB, more than the 976.6 KiB that are read"
    assert gone.why == "expired on 2026-12-01"
    assert github.requests(ZIP) == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Say(410, {"message": "Artifact has expired"}), "has expired: GitHub keeps artifacts for a limited time only"),
        (Say(404, {"message": "Not Found"}), "no longer exists on GitHub"),
        (Say(403, {"message": "Resource not accessible by integration"}), "was refused by GitHub: Resource not"),
        (Say(200, {"no": "redirect"}), "was refused by GitHub: GitHub offered no download"),
    ],
)
async def test_the_reader_learns_why_there_is_nothing(github: Double, files: Files, said: Say, why: str) -> None:
    github.on(ZIP, said)
    fetched = await files.artifact(ARTIFACT)
    assert fetched.path is None
    assert fetched.why.startswith(why)


async def test_a_github_that_is_unwell_is_asked_again_later(github: Double, files: Files) -> None:
    github.always(ZIP, Say(503))
    with pytest.raises(RateLimitedError):
        await files.artifact(ARTIFACT)


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://evil.example/x",
        "https://user:word@evil.example/x",
        "http://127.0.0.1.evil.example/x",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://[",
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["by GitHub", "by the storage"])
async def test_a_redirect_elsewhere_is_not_followed(
    github: Double, storage: Double, files: Files, target: str, *, first: bool
) -> None:
    github.on(ZIP, Say(302, headers={"Location": target}) if first else to(storage))
    storage.on("GET /blob", Say(302, headers={"Location": target}))
    fetched = await files.artifact(ARTIFACT)
    assert fetched.path is None
    assert "is not allowed" in fetched.why or "makes no sense" in fetched.why, fetched.why
    assert len(storage.asked) == (0 if first else 1), "nobody is asked twice for that"


async def test_redirects_do_not_go_on_for_ever(github: Double, storage: Double, files: Files) -> None:
    github.on(ZIP, to(storage))
    storage.always("GET /blob", Say(302, headers={"Location": "/blob"}))
    assert "redirects" in (await files.artifact(ARTIFACT)).why
    assert len(storage.asked) == 3


async def test_a_log_that_is_not_there_yet_is_waited_for(github: Double, storage: Double, files: Files) -> None:
    github.on(LOG, Say(404, {"message": "Not Found"}), Say(404, {"message": "Not Found"}), to(storage))
    storage.on("GET /blob", Say(body="\ufeff2026-12-01 caf\xe9\n".encode() + b"\xff end"))
    fetched = await files.job_log(JOB)
    assert fetched.name == "job.log"
    assert await files.tail(fetched, max_bytes=5) == "\ufffd end"
    assert await files.tail(fetched) == "\ufeff2026-12-01 caf\xe9\n\ufffd end"


async def test_a_log_that_never_was_is_not_waited_for(github: Double, files: Files) -> None:
    github.on(LOG, Say(404, {"message": "Not Found"}))
    github.clock.forward(minutes=3)
    fetched = await files.job_log(JOB)
    assert "never wrote one" in fetched.why
    assert await files.tail(fetched) == ""


async def test_a_full_or_broken_disk_is_told(github: Double, files: Files, tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way of the folder")
    assert (await files.artifact(ARTIFACT)).why.startswith("could not be stored: ")
    assert github.requests(ZIP) == []


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://productionresultssa1.blob.core.windows.net/x?sig=1", True),
        ("https://results-receiver.actions.githubusercontent.com/x", True),
        ("https://github.corp.example/storage/x", True),
        ("https://s3.corp.example/x", True),
        ("http://productionresultssa1.blob.core.windows.net/x", False),
        ("https://blob.core.windows.net.evil.example/x", False),
        ("https://evilblob.core.windows.net.", False),
        ("https://user@x.blob.core.windows.net/x", False),
        ("https://user:word@github.corp.example/x", False),
        ("https://x.blob.core.windows.net@evil.example/x", False),
        ("https://evil.example/x?.blob.core.windows.net", False),
        ("https://evil.example/#.blob.core.windows.net", False),
        ("https://evil.example\\.blob.core.windows.net/x", False),
        ("https://blob.core.windows.net/x", False),
        ("https://[::1]/x", False),
        ("https://[::ffff:169.254.169.254]/x", False),
        ("https://2130706433/x", False),
        ("https://0x7f.1/x", False),
        ("https://localhost/x", False),
        ("https://metadata.google.internal/x", False),
        ("ftp://x.blob.core.windows.net/x", False),
        ("file:///etc/passwd", False),
        ("//x.blob.core.windows.net/x", False),
        ("https://169.254.169.254/x", False),
        ("https://127.0.0.1/x", False),
        ("http://127.0.0.1/x", False),
    ],
)
def test_downloads_come_from_known_hosts_only(url: str, *, allowed: bool) -> None:
    hosts = DownloadHosts("https://github.corp.example/api/v3", ["s3.corp.example"])
    if allowed:
        hosts.check(parse_url(url))
    else:
        with pytest.raises((ForbiddenHostError, DownloadError)):
            hosts.check(parse_url(url))


class Names(AbstractResolver):
    """A name service that answers with the same addresses always."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> Any:
        return [
            {"hostname": host, "host": found, "port": port, "family": family, "proto": 0, "flags": 0}
            for found in self._addresses
        ]

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    "onward",
    ["http://[", "https://a:99999/", "https://a:b/", "https://xn--a.example/", "/\udcff", "https://\xe9.example"],
)
def test_an_address_without_sense_is_told(onward: str) -> None:
    with pytest.raises(DownloadError, match="makes no sense"):
        parse_url(onward)


async def test_a_storage_name_never_leads_into_the_inner_network() -> None:
    hosts = DownloadHosts("https://github.corp.example/api/v3")
    poisoned = PublicResolver(hosts, Names("10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"))
    with pytest.raises(OSError, match="no public address"):
        await poisoned.resolve("x.blob.core.windows.net")
    assert len(await poisoned.resolve("github.corp.example")) == 5
    mixed = PublicResolver(hosts, Names("10.0.0.1", "20.60.0.1"))
    assert [found["host"] for found in await mixed.resolve("x.blob.core.windows.net")] == ["20.60.0.1"]


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:a00:1::", "::10.0.0.1", "::ffff:10.0.0.1", "fec0::1", "ff0e::1"],
)
async def test_nor_by_an_address_that_a_gateway_unpacks(address: str) -> None:
    hosts = DownloadHosts("https://api.github.com")
    with pytest.raises(OSError, match="no public address"):
        await PublicResolver(hosts, Names(address)).resolve("x.blob.core.windows.net")
    unpacked = PublicResolver(hosts, Names(address, "64:ff9b::143c:1", "2603:1030::1"))
    assert len(await unpacked.resolve("x.blob.core.windows.net")) == 2


def test_old_files_go_first_and_none_that_is_in_use(tmp_path: Path) -> None:
    now = time.time()
    for number, (age, size) in enumerate([(10, 500), (3_600, 400), (7_200, 300), (90_000, 200)]):
        path = tmp_path / "1" / str(number) / "f"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (now - age, now - age))
    day_s = timedelta(days=1).total_seconds()
    assert collect(tmp_path, Room(max_bytes=10_000, max_age_s=day_s), now_s=now) == 200
    assert collect(tmp_path, Room(max_bytes=900, max_age_s=day_s), now_s=now) == 300
    assert collect(tmp_path, Room(max_bytes=0, max_age_s=0), now_s=now) == 400
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["0"]
