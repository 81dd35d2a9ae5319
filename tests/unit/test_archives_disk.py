"""What is unpacked to the disk while an archive is read has a limit; the disk may be full, and a file may shrink."""

from __future__ import annotations

import errno
import gzip
import os
import random
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Self

import pytest
from test_archives_nested import contents, tarred, why, zipped

from bot.archives import Budget, Limits, UnreadableError, open_bundle
from bot.diagnose import diagnose_path

FAILED = b"Traceback (most recent call last):\nModuleNotFoundError: No module named 'flash_attn'\n"


class Disk:
    """Counts what is written into temporary files, and may be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, room: int = 10**12) -> None:
        self.written = 0
        self.room = room
        real = tempfile.TemporaryFile

        def counted(*arguments: Any, **more: Any) -> Any:
            file = real(*arguments, **more)
            write = file.write

            def count(data: bytes) -> int:
                self.written += len(data)
                if self.written > self.room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return int(write(data))

            return Counted(file, count)

        monkeypatch.setattr(tempfile, "TemporaryFile", counted)


class Counted:
    """A file whose `write` is another."""

    def __init__(self, file: Any, write: Any) -> None:
        self._file = file
        self.write = write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: tarred(files, "w:gz")], ids=["zip", "tar", "tgz"])
def test_archives_inside_of_others_share_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any) -> None:
    """Eight of 1 MB each where 2 MB may lie on the disk: the rest is told, and plain logs are read all the same."""
    disk = Disk(monkeypatch)
    noise = {f"{number}.log": os.urandom(1024**2) for number in range(8)}
    name = {"zipped": "zip", "tarred": "tar"}.get(pack.__name__, "tar.gz")
    files = {f"{number}.{name}": pack({inner: data}) for number, (inner, data) in enumerate(noise.items())}
    (tmp_path / "a.zip").write_bytes(zipped({**files, "plain.log": b"boom\n"}))
    opened = open_bundle(str(tmp_path / "a.zip"), budget=Budget(limits=Limits(spool_bytes=2 * 1024**2)))
    assert disk.written <= 2 * 1024**2
    assert contents(opened)["plain.log"] == b"boom\n"
    told = why(opened)
    assert sum("not unpacked to its end: 2 MB" in text for text in told.values()) >= 6, told


def test_a_packed_tar_file_shares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    (tmp_path / "a.tar.gz").write_bytes(tarred({"a.log": os.urandom(4 * 1024**2)}, "w:gz"))
    opened = open_bundle(str(tmp_path / "a.tar.gz"), budget=Budget(limits=Limits(spool_bytes=1024**2)))
    assert disk.written <= 1024**2
    assert any("not unpacked to its end" in text for text in why(opened).values())


@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\nexec unzip $0\n"], ids=["zip", "unpacks itself"])
def test_a_full_disk_costs_what_needed_it_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    Disk(monkeypatch, room=1000)
    inner = before + zipped({"inner.log": os.urandom(100_000)})
    (tmp_path / "a.zip").write_bytes(zipped({"deep.zip": inner, "1/none_ab/attempt_0/0/stderr.log": FAILED}))
    found = diagnose_path(str(tmp_path / "a.zip"))
    assert found.category == "dependency"
    assert [(one.name, one.why) for one in found.read.skipped] == [
        ("deep.zip", f"it could not be unpacked: {os.strerror(errno.ENOSPC)}")
    ]
    (tmp_path / "a.tar.gz").write_bytes(tarred({"a.log": os.urandom(100_000)}, "w:gz"))
    with pytest.raises(UnreadableError, match="could not be unpacked: No space left"):
        open_bundle(str(tmp_path / "a.tar.gz"))


def test_standard_input_that_finds_no_room_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(monkeypatch, room=1000)
    monkeypatch.setattr("bot.archives.opening._stdin_pieces", lambda: iter([bytes(2000)]))
    with pytest.raises(UnreadableError, match=r"standard input: .* No space left"):
        open_bundle("-")


@pytest.mark.parametrize("kind", ["log", "gz", "stored", "deflated", "tar"])
def test_a_file_that_shrinks_is_told_and_ends_nothing(tmp_path: Path, kind: str) -> None:
    """What a mapped file has lost must not be touched: the system ends who does."""
    text = random.Random(1).randbytes(3_000_000)
    path = tmp_path / f"a.{'zip' if kind in ('stored', 'deflated') else kind}"
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if kind == "stored" else zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.log", text)
            archive.writestr("b.log", text)
    elif kind == "tar":
        (tmp_path / "a.log").write_bytes(text)
        with tarfile.open(path, "w") as tar:
            tar.add(tmp_path / "a.log", "a.log")
            tar.add(tmp_path / "a.log", "b.log")
    else:
        path.write_bytes(gzip.compress(text, 1) if kind == "gz" else text)
    opened = open_bundle(str(path))
    logs = [*opened.bundle.sources, *filter(None, [opened.bundle.job_log])]
    first = iter(logs[0].chunks())
    begun = next(first)
    os.truncate(path, 100)
    assert len(begun) + sum(map(len, first)) < len(text)
    for log in logs[1:]:
        assert list(log.chunks()) == []
    assert set(why(opened)) == {log.name for log in logs}
    assert all(each.startswith("it is cut short") for each in why(opened).values())
