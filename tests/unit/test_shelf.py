"""What a process that died has left of its downloads goes; what a living one is writing stays."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from github_double import double, gateway

from bot.github.parts import Part, begun, digest_of, to_its_end
from bot.github.shelf import ABANDONED_AFTER_S, IN_USE_S, Room, collect, files_folder, mark_used, taken

WRITE = """
import sys, time
from pathlib import Path
from bot.github.parts import Part
part = Part(Path(sys.argv[1]))
part.append(b"x" * 1000)
print("written", flush=True)
time.sleep(600)
"""


def killed_while_writing(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        assert collect(path.parents[2], Room(max_bytes=0, max_age_s=0), now_s=time.time() + 2 * IN_USE_S) == 0
        process.send_signal(signal.SIGKILL)


def test_a_part_goes_when_its_process_has_died_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "1" / "5" / "artifact-11.zip"
    killed_while_writing(path)
    assert len(list(path.parent.iterdir())) == 1
    assert collect(tmp_path, Room(), now_s=time.time()) == 0, "another process may just be making it"
    assert collect(tmp_path, Room(), now_s=time.time() + 61) == 1000
    assert list(tmp_path.iterdir()) == []


async def test_the_next_start_sweeps(tmp_path: Path) -> None:
    path = files_folder(tmp_path) / "1" / "5" / "artifact-11.zip"
    left = Part(path)
    left.append(b"x")
    left._file.close()  # as when its process is gone
    os.utime(left.path, (0, 0))
    async with double() as github, gateway(github, tmp_path):
        assert not left.path.exists()


def test_a_part_is_no_abandoned_one_while_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been whole for long, while what was read of it was waited for."""
    wanted, replace = tmp_path / "1" / "5" / "a.zip", Path.replace

    def sweep_before(path: Path, target: Path) -> Path:
        assert collect(tmp_path, Room(), now_s=time.time() + ABANDONED_AFTER_S + 1) == 0
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", sweep_before)
    part = Part(wanted)
    part.append(b"x" * 1000)
    part.finish(wanted)
    assert wanted.read_bytes() == b"x" * 1000


def test_a_file_with_holes_counts_as_what_it_takes(tmp_path: Path) -> None:
    part = Part(tmp_path / "1" / "5" / "a.zip")
    part.reserve(10_000_000)
    part.write_at(9_000_000, b"x" * 1000)
    part.finish(tmp_path / "1" / "5" / "a.zip")
    part.discard()
    assert digest_of(tmp_path / "1" / "5" / "a.zip").startswith("sha256:")
    later = time.time() + IN_USE_S + 1
    assert collect(tmp_path, Room(max_bytes=1_000_000), now_s=later) == 0
    assert 1000 <= collect(tmp_path, Room(max_bytes=500), now_s=later) < 1_000_000


@pytest.mark.parametrize("stage", ["made", "written"])
async def test_who_is_cancelled_leaves_no_part_however_often(tmp_path: Path, stage: str) -> None:
    """The thread that makes it, or writes to it, cannot be cancelled: it is waited for."""
    busy, go_on = threading.Event(), threading.Event()

    def hold(there: str) -> None:
        if there == stage:
            busy.set()
            assert go_on.wait(60)

    def make() -> Part:
        part = Part(tmp_path / "a.zip")
        hold("made")
        return part

    def write(part: Part) -> None:
        hold("written")
        part.write_at(0, b"x")

    async def work() -> None:
        async with begun(make) as part:
            await to_its_end(write, part)

    task = asyncio.create_task(work())
    await asyncio.to_thread(busy.wait, 60)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


def test_a_file_system_without_locks_is_left_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks"):
        Part(tmp_path / "1" / "5" / "a.zip")
    assert list(tmp_path.rglob("*.part")) == []


def test_a_folder_that_is_swept_away_while_a_part_begins_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made, sweeps = tmp_path / "1" / "5" / "a.zip", Path.mkdir, 3

    def swept(folder: Path, *given: Any, **more: Any) -> None:
        nonlocal sweeps
        made(folder, *given, **more)
        if folder == path.parent and sweeps:
            sweeps -= 1
            assert collect(tmp_path, Room(), now_s=time.time()) == 0

    monkeypatch.setattr(Path, "mkdir", swept)
    part = Part(path)
    assert sweeps == 0
    part.finish(path)
    assert path.exists()


def test_a_folder_in_the_way_is_an_error_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("in the way")
    with pytest.raises(OSError, match="1"):
        Part(tmp_path / "1" / "5" / "a.zip")


def filed(folder: Path, name: str) -> Path:
    path = folder / "1" / "5" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 5000)
    os.utime(path, (0, 0))
    return path


def test_a_file_that_is_asked_for_while_the_folder_is_looked_through_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, old, unlink = filed(tmp_path, "z.zip"), filed(tmp_path, "a.zip"), Path.unlink
    os.utime(asked, (1, 1))  # after the other one

    def ask_meanwhile(path: Path, **more: Any) -> None:
        assert mark_used(asked)
        unlink(path, **more)

    monkeypatch.setattr(Path, "unlink", ask_meanwhile)
    assert collect(tmp_path, Room(), now_s=time.time()) >= 5000
    assert (asked.exists(), old.exists()) == (True, False)


def test_what_cannot_be_thrown_away_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stays, goes, unlink = filed(tmp_path, "a.zip"), filed(tmp_path, "z.zip"), Path.unlink
    os.utime(goes, (1, 1))

    def refuse(path: Path, **more: Any) -> None:
        if path == stays:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, **more)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert collect(tmp_path, Room(), now_s=time.time()) >= 5000
    assert (stays.exists(), goes.exists()) == (True, False)


def test_a_folder_that_vanishes_while_it_is_looked_through_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filed(tmp_path, "a.zip")
    (tmp_path / "2" / "6").mkdir(parents=True)
    listed = os.listdir

    def vanish(path: Any) -> Any:
        if Path(path).name in {"2", "6"}:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return listed(path)

    def vanish_too(path: Any) -> Any:
        vanish(path)
        return scanned(path)

    scanned = os.scandir
    monkeypatch.setattr(os, "listdir", vanish)
    monkeypatch.setattr(os, "scandir", vanish_too)
    assert taken(tmp_path) >= 5000
    assert collect(tmp_path, Room(), now_s=time.time()) >= 5000
