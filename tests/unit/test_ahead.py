"""The logs of a large artifact are read while the rest of it arrives; what comes of it is the same answer, sooner."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from github_double import Say, storage_double

from analyzers.model import Diagnosis
from bot.analysis import AnalysisPool
from bot.analysis_worker import diagnose_files, read_ahead
from bot.diagnose import diagnose_path
from bot.github.ahead import BATCH_BYTES, MOST_READ_BYTES, Ahead, Extent, ReadSoFar
from bot.github.artifacts import is_needed
from bot.github.downloads import Downloader, Got, Wanted
from bot.github.hosts import DownloadHosts
from bot.github.storage import DownloadError, Storage
from bot.zip_directory import STORED, ZipEntry
from handlers.context import Fetched
from tests.logs import raised

MB = 1024 * 1024


def packed(*, inside: str = "", checkpoint: int = 0) -> bytes:
    """Four ranks whose logs are all that the artifact holds, some 12 MB, but for a checkpoint of so many bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for rank in range(4):
            noise = os.urandom(3 * MB // 2).hex()
            lines = "\n".join(noise[at : at + 200] for at in range(0, len(noise), 200))
            text = lines + "\n" + (raised("ValueError: boom", "megatron/core/a.py:3 f", rank=2) if rank == 2 else "")
            archive.writestr(f"1/none_ab/attempt_0/{rank}/stderr.log", text)
        if checkpoint:
            archive.writestr("checkpoints/a.bin", bytes(checkpoint))
        if inside:
            archive.writestr(inside, b"PK")
    return buffer.getvalue()


class Desk:
    """Reads at once, in this process, and keeps what was asked."""

    def __init__(self, *, busy: int = 0) -> None:
        self.busy = busy
        self.asked: list[list[str]] = []
        self.spoil: tuple[bytes, int] | None = None

    def read(self, path: Path, names: frozenset[str]) -> Awaitable[tuple[bytes, int] | None] | None:
        self.busy -= 1
        if self.busy >= 0:
            return None
        self.asked.append(sorted(name.split("/")[3] for name in names))
        return asyncio.to_thread(read_ahead, str(path), names)


def serve(data: bytes, *, cut: list[int], etag: str = '"e"') -> object:
    """Return a storage that serves parts, and breaks the whole off at each of the places in `cut`, once."""

    def answer(request: web.Request) -> Say:
        wanted, last = request.headers.get("Range", ""), len(data) - 1
        if wanted.startswith("bytes=-"):
            first = max(0, len(data) - int(wanted.removeprefix("bytes=-")))
        elif wanted:
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last = int(begin), int(end or last)
        else:
            return Say(body=data, headers={"ETag": etag}, cut_after=cut.pop(0) if cut else None)
        part = {"Content-Range": f"bytes {first}-{last}/{len(data)}", "ETag": etag}
        return Say(206, body=data[first : last + 1], headers=part)

    return answer


@asynccontextmanager
async def fetched(
    tmp_path: Path, desk: Desk, answer: object, data: bytes, *, digest: str | None = ""
) -> AsyncIterator[Got]:
    async with storage_double() as storage, aiohttp.ClientSession() as session:
        storage.always("GET /blob", answer)  # type: ignore[arg-type]

        async def locate() -> str:
            return f"{storage.url}/blob"

        path = tmp_path / "a.zip"
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}" if digest is not None else None
        downloader = Downloader(Storage(session, DownloadHosts(storage.url), retry_pause_s=0.01))
        yield await downloader.fetch(
            Wanted(path, locate, 10**9, digest, len(data), tmp_path / "part.zip", is_needed, desk.read)
        )


def answer_of(got: Got) -> Diagnosis:
    """Diagnose what was fetched, with what was read ahead and none of the logs themselves."""
    known = {got.digest: got.said}
    return diagnose_files("a", None, [Fetched("a", str(got.path), digest=got.digest)], known).diagnosis


@pytest.mark.parametrize("cut", [[], [7 * MB]])
async def test_logs_are_read_as_they_arrive(tmp_path: Path, cut: list[int]) -> None:
    data, desk = packed(), Desk()
    async with fetched(tmp_path, desk, serve(data, cut=cut), data) as got:
        assert got.path.read_bytes() == data
        assert desk.asked == [["0", "1"], ["2", "3"]]
        expected = diagnose_path(str(got.path), job_name="a")
        scribbled = bytes(12 * MB) + data[12 * MB :]  # what the logs hold is gone; the list of them is not
        got.path.write_bytes(scribbled)
        assert answer_of(got) == expected
        assert expected.culprit_ranks == (2,)


@pytest.mark.parametrize("busy", [0, 1, 10**6])
async def test_logs_that_come_in_parts_are_read_as_they_come(tmp_path: Path, busy: int) -> None:
    """The reading checks them, too; what no worker was idle for is checked for itself."""
    data, desk = packed(checkpoint=8 * MB), Desk(busy=busy)
    async with fetched(tmp_path, desk, serve(data, cut=[]), data) as got:
        assert got.path.name == "part.zip"
        assert sorted(rank for batch in desk.asked for rank in batch) == ([] if busy > 1 else ["0", "1", "2", "3"])
        assert len(got.said) == len(desk.asked)
        if busy <= 1:
            got.path.write_bytes(bytes(12 * MB) + got.path.read_bytes()[12 * MB :])
        assert answer_of(got).culprit_ranks == (2,)


async def test_damage_found_by_reading_leads_to_the_whole(tmp_path: Path) -> None:
    data, desk = packed(checkpoint=8 * MB), Desk()
    parts, whole = serve(data.replace(b"boom", b"BOOM"), cut=[]), serve(data, cut=[])

    def answer(request: web.Request) -> Say:
        return (parts if "Range" in request.headers else whole)(request)  # type: ignore[operator, no-any-return]

    async with fetched(tmp_path, desk, answer, data) as got:
        assert got.path.read_bytes() == data
        # After damage nothing more is read ahead: the whole may be damaged, too.
        assert max(Counter(rank for batch in desk.asked for rank in batch).values()) == 1
        assert got.said == ()


async def test_what_no_worker_was_idle_for_is_read_later(tmp_path: Path) -> None:
    data, desk = packed(), Desk(busy=10**6)
    async with fetched(tmp_path, desk, serve(data, cut=[]), data) as got:
        assert (desk.asked, got.said) == ([], ())
        assert answer_of(got) == diagnose_path(str(got.path), job_name="a")


async def test_an_archive_with_archives_inside_is_not_read_ahead(tmp_path: Path) -> None:
    data, desk = packed(inside="more.zip"), Desk()
    async with fetched(tmp_path, desk, serve(data, cut=[]), data) as got:
        assert (desk.asked, got.said) == ([], ())


async def test_an_archive_of_which_no_member_may_be_read_is_told(tmp_path: Path) -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("1/none_ab/attempt_0/0/stderr.log", os.urandom(12 * MB))
    data = bytearray(buffer.getvalue())
    data[data.rindex(b"PK\1\2") + 8] |= 1  # encrypted
    async with fetched(tmp_path, Desk(), serve(bytes(data), cut=[]), bytes(data)) as got:
        assert [one.why for one in answer_of(got).read.skipped] == ["it is encrypted"]


async def test_what_was_read_of_another_file_is_forgotten(tmp_path: Path) -> None:
    """The first time other bytes come than GitHub announced, the second time the right ones."""
    data, desk = packed(), Desk()
    honest, other = serve(data, cut=[]), serve(data.replace(b"boom", b"BOOM"), cut=[])
    wholes = 0

    def answer(request: web.Request) -> Say:
        nonlocal wholes
        wholes += "Range" not in request.headers
        return (other if wholes == 1 else honest)(request)  # type: ignore[operator, no-any-return]

    async with fetched(tmp_path, desk, answer, data) as got:
        assert wholes == 2
        assert got.path.read_bytes() == data
        assert got.said == ()
        assert len(desk.asked) == 2


async def test_what_was_read_by_another_directory_is_forgotten(tmp_path: Path) -> None:
    """Without a digest nothing else tells that the parts were of another file."""
    data, desk = packed(), Desk()
    at = data.rindex(b"PK\1\2")
    other = data[: at + 38] + b"\1" + data[at + 39 :]  # some attribute of a member
    parts, whole = serve(data, cut=[]), serve(other, cut=[])

    def answer(request: web.Request) -> Say:
        return (parts if "Range" in request.headers else whole)(request)  # type: ignore[operator, no-any-return]

    async with fetched(tmp_path, desk, answer, data, digest=None) as got:
        assert got.path.read_bytes() == other
        assert len(desk.asked) == 2
        assert got.said == ()


async def test_a_member_that_reaches_into_the_next_one_is_read_of_the_whole(tmp_path: Path) -> None:
    """Its checksum was made for the hole that is there as long as only the members arrive that are needed."""
    data, desk = bytearray(packed(checkpoint=8 * MB)), Desk()
    following = data.index(b"checkpoints/a.bin") - 30
    header, entry = data.rindex(b"PK\3\4", 0, following), data.rindex(b"1/none_ab/attempt_0/3/stderr.log") - 46
    begin = header + 30 + int.from_bytes(data[header + 26 : header + 28], "little")
    data[header + 28] = 40  # more of what stands in front of the log, so that it ends later
    data[entry + 16 : entry + 20] = zlib.crc32(data[begin + 40 : following] + bytes(40)).to_bytes(4, "little")
    async with fetched(tmp_path, desk, serve(bytes(data), cut=[]), bytes(data)) as got:
        assert got.path.read_bytes() == data
        assert desk.asked
        assert got.said == ()
        assert [one.name for one in answer_of(got).read.skipped] == ["1/none_ab/attempt_0/3/stderr.log"]


async def test_a_download_that_fails_leaves_nothing(tmp_path: Path) -> None:
    data, desk = packed(), Desk()
    lie = serve(data.replace(b"boom", b"BOOM"), cut=[])
    with pytest.raises(DownloadError, match="SHA-256 differs"):
        async with fetched(tmp_path, desk, lie, data):
            pass
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


def extents(count: int) -> list[Extent]:
    """Members "0", "1", ... one behind the other, each worth a worker's turn."""
    places = [number * BATCH_BYTES for number in range(count)]
    return [Extent(ZipEntry(str(at // BATCH_BYTES), STORED, BATCH_BYTES, 0, 0, at), at + BATCH_BYTES) for at in places]


async def test_a_bomb_is_left_to_the_reading_proper() -> None:
    asked = []

    async def read(names: frozenset[str]) -> tuple[bytes, int]:
        asked.append(sorted(names))
        return b"said", MOST_READ_BYTES

    ahead = Ahead(lambda _, names: read(names))
    ahead.begin(extents(4))
    for number in range(4):
        ahead.arrived(Path("a"), number * BATCH_BYTES, (number + 1) * BATCH_BYTES)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert asked == [["0"]]
    assert await ahead.finish() == ReadSoFar((b"said",), frozenset({"0"}))


async def test_what_was_read_of_parts_does_not_count_for_the_whole() -> None:
    """All is read anew, of the file that will be checked; also what of the parts was complete, or nearly."""
    asked: list[tuple[str, list[str]]] = []

    async def read(path: Path, names: frozenset[str]) -> tuple[bytes, int]:
        asked.append((path.name, sorted(names)))
        return path.name.encode(), 1

    ahead = Ahead(read)
    ahead.begin(extents(2))
    ahead.arrived(Path("parts"), 10, 2 * BATCH_BYTES - 10)
    ahead.arrived(Path("parts"), 0, 10)
    await asyncio.sleep(0)
    ahead.start_over()
    ahead.arrived(Path("whole"), 0, 2 * BATCH_BYTES - 10)
    ahead.arrived(Path("whole"), 2 * BATCH_BYTES - 10, 2 * BATCH_BYTES)
    assert await ahead.finish() == ReadSoFar((b"whole", b"whole"), frozenset({"0", "1"}))
    assert asked == [("parts", ["0"]), ("whole", ["0"]), ("whole", ["1"])]


async def test_what_found_no_idle_worker_is_read_as_soon_as_one_is() -> None:
    """At the end nothing more arrives, so that the end of a reading has to be what it waits for."""
    idle, asked = ["the worker"], []

    async def read(names: frozenset[str]) -> tuple[bytes, int]:
        await asyncio.sleep(0.01)
        idle.append("the worker")
        return f"said {sorted(names)}".encode(), 1

    def offer(_path: Path, names: frozenset[str]) -> Awaitable[tuple[bytes, int]] | None:
        if not idle:
            return None
        idle.pop()
        asked.append(sorted(names))
        return read(names)

    ahead = Ahead(offer)
    ahead.begin(extents(3))
    ahead.arrived(Path("a"), 0, BATCH_BYTES)
    ahead.arrived(Path("a"), BATCH_BYTES, 3 * BATCH_BYTES)
    read_so_far = await ahead.finish()
    assert asked == [["0"], ["1", "2"]]
    assert read_so_far.names == {"0", "1", "2"}
    assert len(read_so_far.said) == 2


async def test_workers_read_ahead_only_when_they_are_idle(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packed())
    names = frozenset({"1/none_ab/attempt_0/2/stderr.log"})
    pool = AnalysisPool(workers=1, limit_s=60.0)
    try:
        reading = pool.read_ahead(path, names)
        assert reading is not None
        assert pool.read_ahead(path, names) is None
        said = await reading
        assert said is not None
        pool.keep_ahead(1, "sha256:1", (said[0],))
        path.write_bytes(path.read_bytes().replace(b"boom", b"BOOM"))
        found = await pool.for_repo(1).diagnose(
            job_name="a", job_log=None, artifacts=[Fetched("a", str(path), digest="sha256:1")]
        )
        assert found.error is not None
        assert found.error.message == "boom"
        cancelled = pool.read_ahead(path, names)
        assert isinstance(cancelled, asyncio.Task)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        broken = pool.read_ahead(tmp_path / "absent.zip", names)
        assert broken is not None
        assert await broken is None
    finally:
        await pool.close()
