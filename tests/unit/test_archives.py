"""A bundle is read from wherever it lies; what is wrong with a part of it is a sentence, not an exception."""

from __future__ import annotations

import io
import os
import random
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import archives
from bot.archives import Budget, Limits, Opened, UnreadableError, open_bundle
from bot.archives.members import slices
from bot.archives.nested import mapped

LOG = b"iteration 1 | loss 9.9\n" * 40_000
FILES = {
    "1/none_ab/attempt_0/0/stderr.log": LOG,
    "1/none_ab/attempt_0/0/stdout.log": b"",
    "nccl_debug.log": b"x" * 70_000,
}


class _Unseekable(io.RawIOBase):
    """A pipe: the sizes of a member are written behind it, as GitHub's archiver does."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._out.write(bytes(data))


def zipped(path: Path, files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED, **info: int) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            entry.external_attr = info.get("external_attr", 0)
            archive.writestr(entry, content)
    return path


def contents(opened: Opened) -> dict[str, bytes]:
    return {source.name: b"".join(source.chunks()) for source in opened.bundle.sources}


def why(opened: Opened) -> dict[str, str]:
    """Every complaint: those of the directory, and those of the reading."""
    contents(opened)
    return {skipped.name: skipped.why for skipped in (*opened.bundle.skipped, *opened.trouble())}


@pytest.mark.parametrize("inflater", ["igzip", "zlib"])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_zip_reads_as_it_was_written(
    tmp_path: Path, method: int, inflater: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if inflater == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    opened = open_bundle(str(zipped(tmp_path / "a.zip", FILES, method=method)))
    assert contents(opened) == FILES
    assert contents(opened) == FILES  # a source is read from its beginning each time
    assert why(opened) == {}
    assert all(len(piece) <= 1 << 20 for source in opened.bundle.sources for piece in source.chunks())


@pytest.mark.parametrize("program", [b"MZ" + bytes(70_000), b"#!/bin/sh\nexec unzip -q $0\n"], ids=["exe", "sh"])
def test_a_zip_behind_a_program_that_unpacks_it(tmp_path: Path, program: bytes) -> None:
    files = {"1/attempt_0/0/stdout.log": b"hello\n" * 50, "1/attempt_0/0/stderr.log": b"ValueError: no\n"}
    whole = zipped(tmp_path / "plain.zip", files).read_bytes()
    for name in ("logs", "logs.exe", "logs.zip"):
        (tmp_path / name).write_bytes(program + whole)
        opened = open_bundle(str(tmp_path / name))
        assert contents(opened) == files
        assert why(opened) == {}
    outer = zipped(tmp_path / "outer.zip", {"a/logs.zip": program + whole, "b/broken.zip": program})
    inner = {f"a/logs.zip/{name}": content for name, content in files.items()}
    assert contents(open_bundle(str(outer))) == inner | {"b/broken.zip": program}


def test_a_log_that_quotes_the_end_of_a_zip_is_a_log(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "plain.zip", {"a.log": b"hello\n"}).read_bytes()
    for tail in (whole + b"\n", whole[whole.rindex(b"PK\5\6") :], b"PK\5\6" + bytes(18)):
        (tmp_path / "log").write_bytes(b"what the tool printed:\n" + tail)
        opened = open_bundle(str(tmp_path / "log"))
        assert opened.bundle.sources == ()
        assert opened.bundle.job_log is not None


def test_a_folder_reads_the_same(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "run" / "away.log").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "run" / "pipe.log")
    opened = open_bundle(str(tmp_path / "run"))
    assert contents(opened) == FILES
    assert set(why(opened)) == {"away.log", "pipe.log"}


def test_a_zip64_and_one_written_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.log", "w", force_zip64=True) as out,
    ):
        out.write(LOG)
    raw = path.read_bytes()
    end = raw.rindex(b"PK\5\6")
    size, offset = struct.unpack_from("<2L", raw, end + 12)
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, offset)
    place = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    path.write_bytes(
        raw[:end] + end64 + place + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    )
    assert contents(open_bundle(str(path))) == {"a.log": LOG}

    with (
        (tmp_path / "s.zip").open("wb") as raw_out,
        zipfile.ZipFile(_Unseekable(raw_out), "w", zipfile.ZIP_DEFLATED) as s,
    ):
        s.writestr("b.log", LOG)
    assert contents(open_bundle(str(tmp_path / "s.zip"))) == {"b.log": LOG}


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "../../x",
        "a/../../x",
        "C:/x",
        "..\\x",
        "a\x07b.log",
        "stderr\u202egol.txt",
        "a\u200b.log",
        "\ufeffx",
    ],
)
def test_a_name_that_lies_is_refused(tmp_path: Path, name: str) -> None:
    opened = open_bundle(str(zipped(tmp_path / "a.zip", {"ok.log": b"fine", name: b"evil"})))
    assert contents(opened) == {"ok.log": b"fine"}
    (complaint,) = opened.bundle.skipped
    assert "its name" in complaint.why
    assert complaint.name.isprintable()


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    path = zipped(tmp_path / "a.zip", {"a.log": b"/etc/passwd"}, external_attr=(kind | 0o777) << 16)
    assert why(open_bundle(str(path))) == {"a.log": "it is a link or a device, not a file"}


def test_names_that_collide_are_read_once(tmp_path: Path) -> None:
    opened = open_bundle(str(zipped(tmp_path / "a.zip", {"a.log": b"1", "A.log": b"2"})))
    assert contents(opened) == {"a.log": b"1"}
    assert why(opened) == {"A.log": "its name is there twice"}


def patched(path: Path, at: int, value: bytes, *, header: bytes = b"PK\1\2") -> Path:
    raw = bytearray(path.read_bytes())
    start = raw.index(header) + at
    raw[start : start + len(value)] = value
    path.write_bytes(raw)
    return path


def test_what_cannot_be_unpacked_says_so(tmp_path: Path) -> None:
    def one(name: str) -> Path:
        return zipped(tmp_path / name, {"a.log": LOG})

    encrypted = open_bundle(str(patched(one("e.zip"), 8, b"\1\0")))
    assert (contents(encrypted), why(encrypted)) == ({}, {"a.log": "it is encrypted"})
    unknown = open_bundle(str(patched(one("m.zip"), 10, b"\x0e\0")))
    assert why(unknown) == {"a.log": "it is packed by method 14, which we do not read"}
    checksum = open_bundle(str(patched(one("c.zip"), 16, b"\0\0\0\0")))
    assert contents(checksum) == {"a.log": LOG}
    assert "checksum" in why(checksum)["a.log"]
    damaged = open_bundle(str(patched(one("d.zip"), 40, b"\xff" * 40, header=b"PK\3\4")))
    assert "damaged" in why(damaged)["a.log"]
    far = open_bundle(str(patched(one("f.zip"), 42, b"\xf0\xff\xff\x0f")))
    assert "header is missing" in why(far)["a.log"]


def test_overlapping_entries_are_a_bomb(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.log": LOG, "b.log": LOG})
    raw = bytearray(path.read_bytes())
    second = raw.rindex(b"PK\1\2")
    raw[second + 42 : second + 46] = b"\0\0\0\0"  # the second entry points at the first one's data
    path.write_bytes(raw)
    assert "overlaps" in why(open_bundle(str(path)))["b.log"]


def test_limits_count_what_came_out_not_what_was_claimed(tmp_path: Path) -> None:
    size = b"\1\0\0\0"
    path = patched(zipped(tmp_path / "a.zip", {"a.log": LOG, "b.log": LOG}), 24, size)  # claims one byte

    def limited(**limits: int) -> tuple[dict[str, str], int]:
        opened = open_bundle(str(path), budget=Budget(Limits(**limits)))
        return why(opened), sum(map(len, contents(opened).values()))

    words, read = limited(file_bytes=300_000)
    assert set(words) == {"a.log", "b.log"}
    assert read <= 600_000
    words, read = limited(total_bytes=1_000_000)
    assert set(words) == {"b.log"}
    assert read < 2 * len(LOG)
    words, _ = limited(ratio=10, ratio_from_bytes=100_000)
    assert "grows more than 10 times" in words["a.log"]
    words, read = limited(entries=1)
    assert words == {"a.zip": "only the first 1 of 2 entries are read"}
    assert read == len(LOG)


@settings(max_examples=120, deadline=None)
@given(st.integers(min_value=0, max_value=1 << 30), st.integers(min_value=0, max_value=1 << 30))
def test_a_cut_or_scribbled_zip_is_read_as_far_as_it_is_one(cut: int, seed: int) -> None:
    raw = bytearray(_sample())
    dice = random.Random(seed)
    if seed % 2:
        for _ in range(dice.randrange(1, 12)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
    else:
        del raw[cut % (len(raw) + 1) :]
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(raw)
        file.flush()
        try:
            opened = open_bundle(file.name)
        except UnreadableError:
            assert not raw.startswith(b"PK\3\4")  # nothing is left that tells it from any other file
            return
        whole = {name: content[:3000] for name, content in FILES.items()}
        complaints = why(opened)
        for name, content in contents(opened).items():
            assert name in complaints or content == whole.get(name, content)


def _sample() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content[:3000])
    return stream.getvalue()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_truncated_download_is_read_as_far_as_it_goes(tmp_path: Path, streamed: bool) -> None:
    noise = random.Random(1).randbytes(150_000)
    files = {"a.log": LOG, "b.log": noise, "c.log": noise}
    path = tmp_path / "a.zip"
    if streamed:
        with path.open("wb") as out, zipfile.ZipFile(_Unseekable(out), "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        zipped(path, files)
    path.write_bytes(path.read_bytes()[:-80_000])
    opened = open_bundle(str(path))
    read = contents(opened)
    assert (read["a.log"], read["b.log"]) == (LOG, noise)
    assert 0 < len(read["c.log"]) < len(noise)
    assert noise.startswith(read["c.log"])
    assert "read from its beginning" in why(opened)["a.zip"]
    assert "cut short" in why(opened)["c.log"]


def test_a_lone_log_is_the_jobs_log(tmp_path: Path) -> None:
    path = tmp_path / "job.txt"
    path.write_bytes(b"##[error]Process completed with exit code 1.\n")
    opened = open_bundle(str(path))
    assert opened.bundle.sources == ()
    assert opened.bundle.job_log is not None
    assert b"".join(opened.bundle.job_log.chunks()).startswith(b"##[error]")
    with pytest.raises(UnreadableError, match="already names"):
        open_bundle(str(path), job_log=str(path))


def test_standard_input_may_be_a_zip(tmp_path: Path) -> None:
    script = (
        "from bot.archives import open_bundle as o\n"
        "print([(s.name, sum(map(len, s.chunks()))) for s in o('-').bundle.sources])"
    )
    data = zipped(tmp_path / "a.zip", FILES).read_bytes()
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str([(name, len(content)) for name, content in FILES.items()])


def test_a_path_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="nowhere: No such file"):
        open_bundle(str(tmp_path / "nowhere"))
    with pytest.raises(UnreadableError, match="must be a file"):
        open_bundle(None, job_log=str(tmp_path))
    with pytest.raises(UnreadableError, match="neither a folder nor a regular file"):
        open_bundle("/dev/null")


def test_folders_in_folders_without_end_are_left_at_some_depth(tmp_path: Path) -> None:
    here = tmp_path
    before = Path.cwd()
    try:
        for level in range(400):
            (here / "x").mkdir()
            os.chdir(here / "x")
            here = Path()
            if level in (100, 399):
                Path("a.log").write_bytes(b"text")
    finally:
        os.chdir(before)
    opened = open_bundle(str(tmp_path))
    assert list(contents(opened).values()) == [b"text"]
    assert set(why(opened).values()) == {"what is in its folders is not read: they lie too deep"}


def test_a_file_that_vanishes_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LOG)
    opened = open_bundle(str(tmp_path))
    (tmp_path / "a.log").unlink()
    assert "could not be read" in why(opened)["a.log"]


def resident_kb(mapped_file: Path) -> int:
    smaps = Path("/proc/self/smaps").read_text().partition(str(mapped_file))[2]
    return int(smaps.partition("Rss:")[2].split()[0])


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what of a file is in memory")
@pytest.mark.parametrize("block_bytes", [4_096, 512 * 1024, 8 * 1024**2])
def test_what_was_read_of_a_mapped_file_is_given_back(tmp_path: Path, block_bytes: int) -> None:
    """The system keeps, and maps, what was written at once in larger blocks."""
    path = tmp_path / "mapped"
    with path.open("w+b", buffering=0) as file:
        for _ in range(8 * 1024**2 // block_bytes):
            file.write(bytes(block_bytes))
        data = mapped(file)
    for begin, end in ((50_001, 3_000_001), (3_000_001, 8 << 20)):
        assert sum(map(len, slices(data, begin, end))) == end - begin
    assert resident_kb(path) <= 256


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    import tracemalloc

    path = zipped(tmp_path / "a.zip", {"a.log": LOG * 40})
    opened = open_bundle(str(path))
    tracemalloc.start()
    assert sum(len(piece) for piece in opened.bundle.sources[0].chunks()) == len(LOG) * 40
    assert tracemalloc.get_traced_memory()[1] < 4 * archives.PIECE
    tracemalloc.stop()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what of a file is in memory")
def test_small_members_are_given_back_too(tmp_path: Path) -> None:
    dice = random.Random(7)
    whole = zipped(tmp_path / "whole.zip", {f"1/{rank}.log": dice.randbytes(60_000) for rank in range(64)}).read_bytes()
    path = tmp_path / "logs.zip"
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(whole), 4_096):
            file.write(whole[at : at + 4_096])
    opened = open_bundle(str(path))
    for source in opened.bundle.sources:
        assert sum(map(len, source.chunks())) == 60_000
    assert resident_kb(path) <= 512
