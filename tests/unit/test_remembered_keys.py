"""Keys that were chosen in an earlier process: whatever they are, the same lines are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.model import Source
from analyzers.parsers.rank_log import RankLogReader
from analyzers.reading.anchors import Anchor, Anchors, Keys
from analyzers.reading.keys import choose_keys
from analyzers.reading.scan import Line, LogScan
from bot.diagnose import packaged_rules

ANCHORS = (Anchor("error one", after=1, most=3), Anchor("error two", most=2), Anchor("or two!"), Anchor("rare"))
LINES = st.sampled_from(["error one", "error two", "error two!", "nothing", "or t", "a rare error", "error", ""])


def remember(literals: Keys, _: Callable[[], Keys]) -> Keys:
    """Keys that are shared, overlap each other, and stand in lines without an anchor."""
    assert literals == (b"error one", b"error two", b"or two!", b"rare")
    return (b"or", b"rar")


def read(anchors: Anchors, text: bytes, size_bytes: int | None) -> tuple[list[Line], list[int]]:
    scan = LogScan(Source("log", lambda: iter([text]), size_bytes), anchors)
    return list(scan), scan.counts


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=40), st.booleans())
def test_other_keys_find_the_same_lines(lines: list[str], is_little: bool) -> None:
    text = "\n".join(lines).encode()
    size_bytes = len(text) if is_little else None
    wanted = read(Anchors(ANCHORS), text, size_bytes)
    assert read(Anchors(ANCHORS, remember), text, size_bytes) == wanted


def test_a_key_that_hits_too_often_is_given_up() -> None:
    text = b"or nothing\n" * 2_000 + b"error one\n" + b"or nothing\n" * 50
    assert read(Anchors(ANCHORS, remember), text, len(text)) == read(Anchors(ANCHORS), text, len(text))


def test_our_own_keys_are_chosen_once() -> None:
    asked: list[Keys] = []

    def choose_once(literals: Keys, choose: Callable[[], Keys]) -> Keys:
        asked.append(literals)
        return choose()

    rules = packaged_rules()
    reader = RankLogReader(rules)
    assert rules.remember is not None
    keys = rules.remember(reader.anchors.literals, partial(choose_keys, reader.anchors.literals))
    assert all(any(key in literal for key in keys) for literal in reader.anchors.literals)
    anchors = Anchors(reader.anchors.anchors, choose_once)
    assert anchors.search(frozenset(), frozenset(), little=True).keys == keys
    anchors.search(frozenset(), frozenset())
    anchors.search(frozenset({3}), frozenset(), little=True)
    assert set(asked) == {reader.anchors.literals}
