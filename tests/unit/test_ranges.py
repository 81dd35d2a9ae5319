"""Large artifacts whose logs are fetched in ranges: what travels, what breaks, and a storage that lies."""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from aiohttp import web
from github_double import BASE, Clock, Double, Say, storage_double

from analyzers.analyze import analyze
from analyzers.model import Source
from bot.archives import open_bundle
from bot.diagnose import diagnose_path, packaged_rules
from bot.github.ahead import Ahead
from bot.github.artifacts import is_needed
from bot.github.members import Members, _plan, extents, spans
from bot.github.parts import Part
from bot.github.ranges import RangesError, Write
from bot.github.storage import TRIES
from bot.zip_directory import STORED, ZipEntry, directory_place
from handlers.context import Artifact, Fetched, Files
from tests.logs import raised

ZIP = f"GET {BASE}/actions/artifacts/11/zip"
CASES = Path(__file__).parent.parent / "cases"
#: A log of rank 1, and one that is far behind it in the file.
LOGS = {
    "1/none_ab/attempt_0/1/stderr.log": raised("ValueError: boom", "megatron/core/a.py:3 f", rank=1),
    "1/none_ab/attempt_0/0/stderr.log": "fine\n" * 40,
}
Serve = Callable[[web.Request], Say]


@cache
def packed() -> bytes:
    """An artifact of which most is a checkpoint between two logs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        (first, text), (second, other) = LOGS.items()
        archive.writestr(first, text)
        archive.writestr("checkpoints/model.bin", os.urandom(10_500_000), zipfile.ZIP_STORED)
        archive.writestr(second, other)
    return buffer.getvalue()


def artifact(data: bytes) -> Artifact:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return Artifact(
        id=11, run_id=5, name="logs", size_bytes=len(data), created_at=Clock().time, expired=False, digest=digest
    )


def part(data: bytes, wanted: str, **other: str) -> Say:
    """What an honest storage answers to a request with this Range."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
    assert found
    first = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
    last = int(found[2]) if found[1] else len(data) - 1
    headers = {"Content-Range": f"bytes {first}-{last}/{len(data)}", "ETag": '"e"', **other}
    return Say(206, body=data[first : last + 1], headers=headers)


def serve(data: bytes) -> Serve:
    return lambda request: part(data, request.headers["Range"]) if "Range" in request.headers else Say(body=data)


@pytest.fixture
async def storage(github: Double) -> AsyncIterator[Double]:
    async with storage_double() as running:
        github.always(ZIP, Say(302, headers={"Location": f"{running.url}/blob?s=1"}))
        yield running


def path_of(fetched: Fetched) -> Path:
    assert fetched.path is not None, fetched.why
    return Path(fetched.path)


def files_in(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())


async def test_only_what_is_needed_travels(github: Double, storage: Double, files: Files, tmp_path: Path) -> None:
    storage.always("GET /blob", serve(packed()))
    fetched = await files.artifact(artifact(packed()))
    ranges = [asked.headers["Range"] for asked in storage.asked]
    assert ranges[0] == f"bytes=-{128 * 1024}"
    assert len(ranges) == 2, "the second log came with the directory"
    assert not any("Authorization" in asked.headers for asked in storage.asked)
    whole = tmp_path / "whole.zip"
    whole.write_bytes(packed())
    in_parts = path_of(fetched)
    assert diagnose_path(str(in_parts)) == diagnose_path(str(whole))
    assert in_parts.stat().st_size == len(packed())
    assert in_parts.stat().st_blocks * 512 < 1_000_000, "the checkpoint is a hole"
    assert await files.artifact(artifact(packed())) == fetched
    assert len(storage.asked) == 2, "asked again, it lies there"
    assert files_in(tmp_path) == [in_parts.name, "whole.zip"]


async def test_a_digest_that_only_was_announced_makes_no_two_artifacts_one(
    github: Double, storage: Double, files: Files
) -> None:
    """Who uploads an artifact says what its digest is: he could say that of another one."""
    storage.always("GET /blob", serve(packed()))
    github.always(f"GET {BASE}/actions/artifacts/12/zip", Say(302, headers={"Location": f"{storage.url}/blob"}))
    one = await files.artifact(artifact(packed()))
    other = await files.artifact(replace(artifact(packed()), id=12))
    assert path_of(one) != path_of(other)
    assert len({one.digest, other.digest, artifact(packed()).digest}) == 3


async def test_an_artifact_that_was_replaced_under_its_id_is_fetched_anew(storage: Double, files: Files) -> None:
    small = [packed()[:300_000], packed()[:300_001]]
    large = [packed(), packed()[:5_000_000] + b"other" + packed()[5_000_005:]]
    for old, new in (small, large):
        fetched = []
        for data in (old, new):
            storage.always("GET /blob", serve(data))
            fetched.append(await files.artifact(artifact(data)))
        assert path_of(fetched[1]).stat().st_size == len(new)
        assert fetched[0].digest != fetched[1].digest
    assert diagnose_path(str(path_of(fetched[0]))) == diagnose_path(str(path_of(fetched[1])))


async def test_a_small_file_is_fetched_in_one_request(storage: Double, files: Files) -> None:
    data = packed()[:300_000]
    storage.on("GET /blob", serve(data))
    assert path_of(await files.artifact(artifact(data))).read_bytes() == data
    assert "Range" not in storage.asked[0].headers


async def test_a_file_that_is_needed_almost_entirely_is_fetched_whole(
    github: Double, storage: Double, files: Files
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("0/stdout.log", os.urandom(10_100_000))
    storage.always("GET /blob", serve(buffer.getvalue()))
    assert path_of(await files.artifact(artifact(buffer.getvalue()))).read_bytes() == buffer.getvalue()
    assert ["Range" in asked.headers for asked in storage.asked] == [True, False]
    assert len(github.requests(ZIP)) == 1, "one address is good for both"


async def test_a_range_goes_on_where_it_broke(storage: Double, files: Files) -> None:
    """The log in front of the checkpoint, that is; nothing is fetched twice."""
    begun = []

    def breaks(request: web.Request) -> Say:
        said = part(packed(), request.headers["Range"])
        if request.headers["Range"].startswith("bytes=-"):
            return said
        begun.append(int(request.headers["Range"].removeprefix("bytes=").split("-")[0]))
        return replace(said, cut_after=50) if len(begun) < 4 else said

    storage.always("GET /blob", breaks)
    assert path_of(await files.artifact(artifact(packed()))).name != "artifact-11.zip"
    assert begun == [0, 50, 100, 150]
    assert storage.asked[-1].headers["If-Range"] == '"e"'


async def test_a_range_that_breaks_behind_its_last_byte_is_whole(storage: Double, files: Files) -> None:
    """Nothing is left to go on with: a wish for it would ask for the bytes up to before the first one."""

    def breaks(request: web.Request) -> Say:
        said = part(packed(), request.headers["Range"])
        return replace(said, cut_after=len(said.body or b""))

    storage.always("GET /blob", breaks)
    assert path_of(await files.artifact(artifact(packed()))).name != "artifact-11.zip"
    assert len(storage.asked) == 2, "the end of the file, and the log in front"


async def test_an_address_that_expires_on_the_way_is_renewed(github: Double, storage: Double, files: Files) -> None:
    def expires(request: web.Request) -> Say:
        tail = request.headers["Range"].startswith("bytes=-")
        return serve(packed())(request) if tail or request.query["s"] == "2" else Say(403, body=b"expired")

    github.on(ZIP, *(Say(302, headers={"Location": f"{storage.url}/blob?s={number}"}) for number in (1, 2)))
    storage.always("GET /blob", expires)
    assert path_of(await files.artifact(artifact(packed()))).name != "artifact-11.zip"
    assert [asked.path for asked in storage.asked] == ["/blob?s=1", "/blob?s=1", "/blob?s=2"]
    assert len(github.requests(ZIP)) == 2


def said(**headers: str) -> Callable[[Say], Say]:
    return lambda honest: replace(honest, headers={**honest.headers, **headers})


#: What a storage may do to the second and every later answer, and to the first one too.
LIES: dict[str, Callable[[Say], Say]] = {
    "another part": said(**{"Content-Range": f"bytes 7-106/{len(packed())}"}),
    "another total": lambda honest: said(**{"Content-Range": honest.headers["Content-Range"] + "1"})(honest),
    "no part at all": said(**{"Content-Range": ""}),
    "a total of any size": said(**{"Content-Range": "bytes 0-99/*"}),
    "many parts": said(**{"Content-Type": "multipart/byteranges; boundary=x", "Content-Range": ""}),
    "packed once more": said(**{"Content-Encoding": "gzip"}),
    "packed in some way": said(**{"Content-Encoding": "x-unknown"}),
    "too many bytes": lambda honest: replace(honest, body=(honest.body or b"") + b"x"),
    "too few bytes": lambda honest: replace(honest, body=(honest.body or b"")[:-1]),
    "other bytes": lambda honest: replace(honest, body=b"\0" * len(honest.body or b"")),
    "the whole": lambda _: Say(200, body=packed()),
    "not satisfiable": lambda _: Say(416),
    "unwell": lambda _: Say(503),
    "gone": lambda _: Say(404),
}


#: What the next try may mend.
PASSING = {"too few bytes", "unwell", "gone"}


@pytest.mark.parametrize("lie", [*LIES, "another file"])
@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_storage_that_lies_about_parts_is_asked_for_the_whole(
    storage: Double, files: Files, tmp_path: Path, lie: str, *, from_the_start: bool
) -> None:
    spoil = LIES.get(lie, said(ETag='"other"'))

    def answer(request: web.Request) -> Say:
        if "Range" not in request.headers:
            return Say(body=packed())
        honest = part(packed(), request.headers["Range"])
        tail = request.headers["Range"].startswith("bytes=-")
        return spoil(honest) if from_the_start or not tail else honest

    storage.always("GET /blob", answer)
    fetched = await files.artifact(artifact(packed()))
    if lie == "another file" and from_the_start:  # every answer has that ETag: it is the file's
        assert path_of(fetched).name != "artifact-11.zip"
        return
    assert path_of(fetched).read_bytes() == packed()
    assert files_in(tmp_path) == ["artifact-11.zip"]
    assert (len(storage.asked) > TRIES) == (lie in PASSING)


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest/meta-data", "https://evil.example/x"])
@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_part_is_not_fetched_from_elsewhere_either(
    storage: Double, files: Files, tmp_path: Path, target: str, *, from_the_start: bool
) -> None:
    def away(request: web.Request) -> Say:
        honest = not from_the_start and request.headers["Range"].startswith("bytes=-")
        return serve(packed())(request) if honest else Say(302, headers={"Location": target})

    storage.always("GET /blob", away)
    fetched = await files.artifact(artifact(packed()))
    assert fetched.path is None
    assert "is not allowed" in fetched.why
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("whole", [Say(200, body=b"other"), Say(500), Say(403)])
async def test_if_the_whole_cannot_be_had_either_it_is_told(
    storage: Double, files: Files, tmp_path: Path, whole: Say
) -> None:
    storage.always("GET /blob", lambda request: Say(206) if "Range" in request.headers else whole)
    fetched = await files.artifact(artifact(packed()))
    assert fetched.path is None
    assert fetched.why
    assert files_in(tmp_path) == []


def directory_of(data: bytes, change: Callable[[bytearray, int], None]) -> bytes:
    """Return the file with another directory: `change` gets it, and where its first entry begins."""
    changed = bytearray(data)
    change(changed, data.index(b"PK\1\2", len(data) - 1_000))
    return bytes(changed)


def point_outside(data: bytearray, entry: int) -> None:
    data[entry + 42 : entry + 46] = (0x7FFFFFFF).to_bytes(4, "little")


def point_elsewhere(data: bytearray, entry: int) -> None:
    data[entry + 42 : entry + 46] = (5).to_bytes(4, "little")


def other_checksum(data: bytearray, entry: int) -> None:
    data[entry + 16] ^= 1


def endless(data: bytearray, _entry: int) -> None:
    end = data.rindex(b"PK\5\6")
    data[end + 12 : end + 20] = b"\xff\xff\xff\x00" + b"\0\0\0\0"


@pytest.mark.parametrize("change", [point_outside, point_elsewhere, other_checksum, endless])
async def test_a_directory_that_lies_leads_to_the_whole_file(
    storage: Double, files: Files, change: Callable[[bytearray, int], None]
) -> None:
    data = directory_of(packed(), change)
    storage.always("GET /blob", serve(data))
    assert path_of(await files.artifact(artifact(data))).read_bytes() == data


async def test_a_file_of_another_size_than_github_says_is_fetched_whole(storage: Double, files: Files) -> None:
    storage.always("GET /blob", serve(packed()))
    other = replace(artifact(packed()), size_bytes=len(packed()) + 1)
    assert path_of(await files.artifact(other)).read_bytes() == packed()


class Local:
    """A remote file that is here."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes, self.spent_bytes = len(data), 0

    async def end(self, most_bytes: int) -> tuple[int, bytes]:
        return self.size_bytes - most_bytes, self._data[-most_bytes:]

    async def copy(self, begin: int, end: int, write: Write) -> None:
        await write(begin, self._data[begin:end])


async def test_thousands_of_members_are_looked_at_off_the_loop(tmp_path: Path) -> None:
    """Told by the processor time of the loop's own thread, beside that of the same work done here."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for rank in range(5_000):
            archive.writestr(f"1/none_ab/attempt_0/{rank}/stderr.log", "fine")
        archive.writestr("checkpoints/model.bin", bytes(2_000_000))
    data, part = buffer.getvalue(), Part(tmp_path / "a.zip")
    members = Members(Local(data), part, is_needed, Ahead(None))  # type: ignore[arg-type]
    before = time.thread_time()
    await members.fetch(size_bytes=len(data))
    spent_s, before = time.thread_time() - before, time.thread_time()
    begin, _ = directory_place(data)
    assert len(_plan(part.path, is_needed, begin, begin).wanted) == 5_000
    assert spent_s < (time.thread_time() - before) / 2
    part.discard()


def test_near_members_are_read_together_and_long_ones_in_turns() -> None:
    def entry(offset: int, size: int) -> ZipEntry:
        return ZipEntry(str(offset), STORED, size, size, 0, offset)

    mb = 1024 * 1024
    near = [entry(0, 100), entry(50_000, 100), entry(10 * mb, 100), entry(20 * mb, 3 * mb)]
    wanted = extents([*near, entry(200, 100), entry(11 * mb, 100)], near, 30 * mb)
    assert spans(wanted, known_from=23 * mb + 1000) == [
        (0, 50_000 + 100 + 131_124),
        (10 * mb, 10 * mb + 100 + 131_124),
        (20 * mb, 22 * mb),
        (22 * mb, 23 * mb + 1000),
    ]
    with pytest.raises(RangesError, match="outside"):
        extents(near, near, 21 * mb)


@pytest.mark.parametrize("case", [path.name for path in sorted(CASES.iterdir()) if (path / "artifact").is_dir()][::6])
def test_nothing_is_read_that_is_not_needed(case: str) -> None:
    """Otherwise an answer from parts of an archive would differ from the answer from all of it."""
    opened = open_bundle(str(CASES / case / "artifact"))
    read: set[str] = set()

    def watched(source: Source) -> Source:
        def chunks() -> Iterator[bytes]:
            read.add(source.name)
            return source.chunks()

        return replace(source, chunks=chunks)

    sources = tuple(watched(source) for source in opened.bundle.sources)
    analyze(replace(opened.bundle, sources=sources), packaged_rules())
    assert {name for name in read if not is_needed(name)} == set()
