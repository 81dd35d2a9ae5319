"""Tar files, gzip files, archives in archives and standard input are read like a folder, within the same limits."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from bot.archives import Budget, Limits, Opened, open_bundle

LOG = b"iteration 1 | loss 9.9\n" * 40_000
FILES = {"1/none_ab/attempt_0/0/stderr.log": LOG, "1/none_ab/attempt_0/1/stderr.log": b"boom\n"}


def contents(opened: Opened) -> dict[str, bytes]:
    return {source.name: b"".join(source.chunks()) for source in opened.bundle.sources}


def why(opened: Opened) -> dict[str, str]:
    contents(opened)
    return {skipped.name: skipped.why for skipped in (*opened.bundle.skipped, *opened.trouble())}


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize("data", [tarred(FILES), tarred(FILES, "w:gz"), zipped(FILES)], ids=["tar", "tgz", "zip"])
def test_an_archive_reads_as_it_was_written(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    opened = open_bundle(str(tmp_path / "a"))
    assert contents(opened) == FILES
    assert contents(opened) == FILES  # from its beginning each time
    assert why(opened) == {}
    script = (
        "from bot.archives import open_bundle as o\n"
        "print([(s.name, sum(map(len, s.chunks()))) for s in o('-').bundle.sources])"
    )
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str([(name, len(content)) for name, content in FILES.items()])


def test_archives_inside_are_folders(tmp_path: Path) -> None:
    inner = {f"node-0.zip/{name}": content for name, content in FILES.items()}
    outer = {
        "node-0.zip": zipped(FILES),
        "node-1.tar.gz": tarred(FILES, "w:gz"),
        "node-2.tar": tarred(FILES),
        "dmesg.log.gz": gzip.compress(LOG),
        "fake.zip": b"no zip file",
    }
    expected = {
        **inner,
        **{name.replace("node-0.zip", "node-1.tar.gz"): content for name, content in inner.items()},
        **{name.replace("node-0.zip", "node-2.tar"): content for name, content in inner.items()},
        "dmesg.log": LOG,
        "fake.zip": b"no zip file",
    }
    (tmp_path / "a.zip").write_bytes(zipped(outer))
    opened = open_bundle(str(tmp_path / "a.zip"))
    assert contents(opened) == expected
    assert why(opened) == {}
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in outer.items():
        (folder / name).write_bytes(content)
    assert contents(open_bundle(str(folder))) == expected


def test_a_nest_of_archives_has_a_bottom(tmp_path: Path) -> None:
    data = b"deep"
    for level in range(5):
        data = zipped({f"{level}.zip" if level else "a.log": data})
    (tmp_path / "a.zip").write_bytes(data)
    opened = open_bundle(str(tmp_path / "a.zip"))
    assert contents(opened) == {}
    assert why(opened) == {"4.zip/3.zip/2.zip": "it is an archive too deep inside of others"}


@pytest.mark.parametrize("inflater", ["igzip", "zlib"])
def test_a_packed_log_of_several_parts(tmp_path: Path, inflater: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if inflater == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(LOG) + gzip.compress(b"") + gzip.compress(b"end\n") + b"\0" * 500_000)
    for opened in (open_bundle(str(path)), open_bundle(None, job_log=str(path))):
        assert opened.bundle.job_log is not None
        assert b"".join(opened.bundle.job_log.chunks()) == LOG + b"end\n"
        assert opened.trouble() == ()
    path.write_bytes(gzip.compress(LOG)[:-20])
    opened = open_bundle(str(path))
    assert opened.bundle.job_log is not None
    assert LOG.startswith(b"".join(opened.bundle.job_log.chunks())[:1000])
    assert [one.why for one in opened.trouble()] in (
        ["it is cut short"],
        ["it is damaged: it cannot be unpacked to its end"],
    )
    for garbage in (b"#", b"garbage", b"\0" * 500_000 + b"\x1f\x8bx"):
        path.write_bytes(gzip.compress(LOG) + garbage)
        opened = open_bundle(str(path))
        assert opened.bundle.job_log is not None
        assert b"".join(opened.bundle.job_log.chunks()) == LOG
        assert [one.why for one in opened.trouble()] == ["what stands behind its end is not packed, and was left out"]


@pytest.mark.parametrize(
    ("name", "packer"),
    [
        ("1/none_ab12cd34/attempt_0/0/stderr.log.xz", "xz"),
        ("job.txt.BZ2", "bzip2"),
        ("logs.tar.zst", "zstd"),
        ("launcher.log.lz4", "lz4"),
        ("old.log.Z", "compress"),
        ("logs.7z", "7z"),
        ("weights.pt.xz", None),
        ("tensorboard/a.log.xz", None),
        ("xz.log", None),
    ],
)
def test_a_log_packed_in_another_way_is_not_passed_over_in_silence(
    tmp_path: Path, name: str, packer: str | None
) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({name: b"packed", "b.log": b"text"}))
    opened = open_bundle(str(tmp_path / "a.zip"))
    assert contents(opened).get("b.log") == b"text"
    assert why(opened) == ({name: f"it is packed with {packer}, which is not read"} if packer else {})


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz"])
def test_a_tar_of_nothing_is_a_tar(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / name, "w:gz" if name.endswith("z") else "w"):
        pass
    opened = open_bundle(str(tmp_path / name))
    assert (opened.bundle.sources, opened.bundle.job_log, why(opened)) == ((), None, {})
    (tmp_path / "a.log").write_bytes(bytes(10_240))  # what a log looks like that was emptied while it was written
    assert open_bundle(str(tmp_path / "a.log")).bundle.job_log is not None


def test_a_bomb_inside_is_stopped_by_what_came_out(tmp_path: Path) -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    (tmp_path / "a.zip").write_bytes(zipped({"bomb.log.gz": bomb, "b.zip": zipped({"c.log": b"\0" * 20_000_000})}))
    limits = Limits(ratio=100, ratio_from_bytes=1_000_000)
    opened = open_bundle(str(tmp_path / "a.zip"), budget=Budget(limits))
    assert sum(map(len, contents(opened).values())) < 5_000_000
    assert set(why(opened)) == {"bomb.log", "b.zip/c.log"}


def test_a_tar_that_lies_or_ends_early(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind in (("ok.log", tarfile.REGTYPE), ("../out.log", tarfile.REGTYPE), ("link.log", tarfile.SYMTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd" if kind == tarfile.SYMTYPE else ""
            archive.addfile(entry)
        archive.addfile(tarfile.TarInfo("ok.log"))
        last = tarfile.TarInfo("last.log")
        last.size = len(LOG)
        archive.addfile(last, io.BytesIO(LOG))
    path = tmp_path / "a.tar"
    path.write_bytes(stream.getvalue())
    opened = open_bundle(str(path))
    assert contents(opened) == {"ok.log": b"", "last.log": LOG}
    assert why(opened) == {
        "../out.log": "its name leads out of the archive",
        "link.log": "it is a link or a device, not a file",
    } | {"ok.log": "its name is there twice"}
    path.write_bytes(stream.getvalue()[:100_000])
    cut = open_bundle(str(path))
    assert LOG.startswith(contents(cut)["last.log"])
    assert "it is cut short: the archive ends inside it" in why(cut).values()
    limited = open_bundle(str(path), budget=Budget(Limits(entries=2)))
    assert why(limited)["a.tar"] == "only its first 2 entries are read"


def test_reading_can_be_given_up(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(FILES))
    budget = Budget()
    opened = open_bundle(str(tmp_path / "a.zip"), budget=budget)
    budget.cancel()
    assert set(contents(opened).values()) == {b""}
    assert set(why(opened).values()) == {"reading was given up"}
