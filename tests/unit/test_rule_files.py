"""Parsed YAML is kept beside compiled modules: quick, and never older than its source."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from config import rule_files
from config.rule_files import documents

#: Of a file that nobody has touched since; a test that writes twice within a second sets it apart.
LONG_AGO_S = 1_700_000_000


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def write(path: Path, text: str, *, at_s: int = LONG_AGO_S) -> None:
    path.write_text(text)
    os.utime(path, (at_s, at_s))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "rules"
    found.mkdir()
    write(found / "20-b.yaml", "- id: second\n")
    write(found / "10-a.yaml", "- id: first\n  retryable: true\n")
    write(found / "notes.txt", "no rules: [")
    return found


def forbid_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object, **__: object) -> object:
        raise AssertionError("parsed again")

    monkeypatch.setattr(yaml, "load", parse)


def test_a_folder_is_read_in_the_order_of_its_names(folder: Path) -> None:
    assert documents(str(folder), None) == [[{"id": "first", "retryable": True}], [{"id": "second"}]]
    assert documents(str(folder / "20-b.yaml"), None) == [[{"id": "second"}]]


def test_what_was_parsed_is_not_parsed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = str(folder.parent / "cache" / "rules.parsed")
    first = documents(str(folder), kept)
    forbid_parsing(monkeypatch)
    assert documents(str(folder), kept) == first
    assert [one.name for one in (folder.parent / "cache").iterdir()] == ["rules.parsed"]


@pytest.mark.parametrize("change", ["time", "size", "new file", "removed", "renamed"])
def test_a_changed_source_is_parsed_again(folder: Path, change: str) -> None:
    kept = str(folder.parent / "rules.parsed")
    documents(str(folder), kept)
    if change == "time":
        write(folder / "20-b.yaml", "- id: sec0nd\n", at_s=LONG_AGO_S + 1)
    elif change == "size":
        write(folder / "20-b.yaml", "- id: the second\n")
    elif change == "new file":
        write(folder / "30-c.yaml", "- id: third\n")
    elif change == "removed":
        (folder / "10-a.yaml").unlink()
    else:
        (folder / "10-a.yaml").rename(folder / "90-a.yaml")
    now = documents(str(folder), None)
    assert documents(str(folder), kept) == now
    assert documents(str(folder), kept) == now


@pytest.mark.parametrize("damage", [b"", b"\xdb\x02\x00", b"nonsense", b"[[], []]", b"N", b"i\1\0\0\0", b"[\0\0\0\0"])
def test_a_damaged_copy_is_as_good_as_none(folder: Path, damage: bytes) -> None:
    kept = folder.parent / "rules.parsed"
    wanted = documents(str(folder), str(kept))
    whole = kept.read_bytes()
    kept.write_bytes(damage or whole[: len(whole) // 2])
    assert documents(str(folder), str(kept)) == wanted
    assert kept.read_bytes() == whole


def test_a_copy_with_a_hole_is_as_good_as_none(folder: Path) -> None:
    """What stands around the hole is whole, so that nothing but its checksum tells."""
    kept = folder.parent / "rules.parsed"
    wanted = documents(str(folder), str(kept))
    whole = kept.read_bytes()
    kept.write_bytes(whole.replace(b"second", bytes(6)))
    assert kept.read_bytes() != whole
    assert documents(str(folder), str(kept)) == wanted
    assert kept.read_bytes() == whole


def test_a_folder_that_may_not_be_written_changes_nothing(folder: Path) -> None:
    (folder.parent / "file").write_text("in the way")
    kept = str(folder.parent / "file" / "rules.parsed")
    assert documents(str(folder), kept) == documents(str(folder), None)


def test_nothing_is_kept_where_python_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept = folder.parent / "rules.parsed"
    documents(str(folder), str(kept))
    assert not kept.exists()


def test_several_threads_may_keep_the_same(folder: Path) -> None:
    kept = folder.parent / "rules.parsed"
    wanted = documents(str(folder), None)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: documents(str(folder), str(kept)), range(40))) == [wanted] * 40
    assert sorted(one.name for one in folder.parent.iterdir()) == ["rules", "rules.parsed"]


def test_what_a_killed_process_left_is_deleted(folder: Path) -> None:
    """But nothing that another one may be writing just now, and nothing of other files."""
    kept = folder.parent / "rules.parsed"
    write(folder.parent / "rules.parsed.17.140", "a beginning")
    write(folder.parent / "fixes.parsed.17.140", "something else")
    (folder.parent / "rules.parsed.18.140").write_text("under way")
    documents(str(folder), str(kept))
    left = sorted(one.name for one in folder.parent.iterdir())
    assert left == ["fixes.parsed.17.140", "rules", "rules.parsed", "rules.parsed.18.140"]


def test_our_rules_are_those_in_the_files() -> None:
    files = sorted((Path(rule_files.FOLDER) / "rules").glob("*.yaml"))
    assert list(rule_files.rule_documents()) == [yaml.safe_load(file.read_text()) for file in files]
    assert rule_files.fix_document() == yaml.safe_load((Path(rule_files.FOLDER) / "fixes.yaml").read_text())
