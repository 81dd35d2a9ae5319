"""Patterns that are compiled at their first use."""

from __future__ import annotations

import gc
import importlib
import re
import threading
from pathlib import Path

import pytest

from analyzers import patterns
from analyzers.patterns import pattern

ROOT = Path(__file__).parents[2]


def test_it_does_what_the_pattern_does() -> None:
    word, compiled = pattern(r"(?P<a>x+)|y", re.IGNORECASE), re.compile(r"(?P<a>x+)|y", re.IGNORECASE)
    text = "aXxbyc"
    assert word.findall(text) == compiled.findall(text) == ["Xx", ""]
    assert [found.span() for found in word.finditer(text)] == [(1, 3), (4, 5)]
    assert word.sub("-", text) == "a-b-c"
    assert word.split("ayb") == compiled.split("ayb")
    assert word.match(text) is None
    assert word.fullmatch("XX") is not None
    assert (word.pattern, word.flags, word.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    assert pattern(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_it_is_compiled_once_and_only_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags: compiled.append(text) or original(text, flags))
    word = pattern("once")
    assert compiled == []
    assert [word.search("once") is None, word.match("once") is None, word.search("never") is None] == [
        False,
        False,
        True,
    ]
    assert compiled == ["once"]


def test_several_threads_may_be_the_first() -> None:
    word = pattern(r"(?:a|b)*c")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(word.fullmatch("ababc"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in found if one is not None]) == 8


def test_every_pattern_of_ours_compiles() -> None:
    for folder in ("analyzers", "handlers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            importlib.import_module(path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."))
    ours = [one for one in gc.get_objects() if isinstance(one, patterns._Later)]
    assert len(ours) > 150
    for one in ours:
        assert isinstance(re.compile(*one._asked), re.Pattern)
