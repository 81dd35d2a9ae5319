"""Whatever the chunk borders, the native code at hand, floods and noise: the same lines, the true ones."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzers.model import Source
from analyzers.parsers.rank_log import RankLogReader
from analyzers.reading import literals, scan
from analyzers.reading.anchors import Anchor, Anchors
from analyzers.reading.keys import ORDINARY, choose_keys
from analyzers.reading.scan import Line, LogScan
from bot.diagnose import packaged_rules
from tests.logs import source

#: Many alike, so that keys are shared; caps so low that anchors are used up, counted out and dropped.
ANCHORS = [
    Anchor("boom", after=2, most=4),
    Anchor("Error: boom", after=1),
    Anchor("flood", most=3),
    Anchor("flooding", most=2),
    Anchor("went on", most=2, again=True),
    *(Anchor(f"device-side {word} triggered", most=5) for word in ("assert", "fault", "trap")),
    *(Anchor(f"ncclFailure{number:02d}") for number in range(70)),
]
COMPILED = Anchors(ANCHORS)
COMPILED.book(None)  # enough was read with them for keys to be chosen

PIECES = st.sampled_from(
    [
        *(b"boom", b"Error: boom", b"flood", b"flooding", b"device-side ", b"fault triggered", b"ncclFailure07"),
        *(
            b"went on",
            b"went on\n" * 4,
            b"ncclFailure",
            b"\n",
            b"\n",
            b"\n",
            b"\r",
            b"\r\n",
            b"\0",
            b"\xff\xfe",
            "é🙂".encode(),
            "é🙂".encode()[:-1],
        ),
        *(b"\x1b[31m", b"x" * 70_000, b"flood\n" * 1_300, b"ncclFailure\n" * 600, b"[rank3]: boom\n"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map(b"".join)


def read(data: bytes, chunk_bytes: int, anchors: Anchors = COMPILED) -> tuple[list[Line], list[int], int]:
    log = LogScan(source(data, chunk_bytes=chunk_bytes), anchors)
    return list(log), log.counts, log.lines


@pytest.fixture(scope="module")
def pure() -> Iterator[Anchors]:
    """The anchors as they are compiled where the native package is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ahocorasick_rs", None)
        anchors = Anchors(ANCHORS)
        anchors.book(None)
        with pytest.raises(ImportError):
            import ahocorasick_rs  # noqa: F401
        yield anchors


@settings(deadline=None)
@given(TEXTS, st.integers(1, 100_000))
def test_chunk_borders_change_nothing(data: bytes, chunk_bytes: int) -> None:
    assert read(data, max(chunk_bytes, len(data) // 300 + 1)) == read(data, len(data) + 1)


@settings(deadline=None)
@given(data=TEXTS)
def test_without_native_code_the_answer_is_the_same(pure: Anchors, data: bytes) -> None:
    assert read(data, 50_000, pure) == read(data, 50_000)


@settings(deadline=None)
@given(TEXTS)
@example(b"boom" * 4 + b"Error: boom\nboomfault triggered")  # used up in one line, and met by another's key in the next
def test_before_keys_are_chosen_the_answer_is_the_same(data: bytes) -> None:
    fresh = Anchors(ANCHORS)
    fresh._little_bytes = -len(data)
    assert read(data, 50_000, fresh) == read(data, 50_000)
    assert [little for _, _, little in fresh._searches] == [True] * len(fresh._searches)


def test_keys_are_chosen_once_that_pays() -> None:
    anchors = Anchors(ANCHORS)
    assert [anchors.book(900_000) for _ in range(4)] == [True, True, False, False]
    assert Anchors(ANCHORS).book(None) is False


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=12).filter(lambda literal: b"\n" not in literal), max_size=150))
def test_each_literal_holds_a_key(literals_: list[bytes]) -> None:
    keys = choose_keys(literals_)
    assert all(any(key in literal for key in keys) for literal in literals_)


def test_keys_that_stay_keep_their_places_when_an_anchor_is_used_up() -> None:
    words = [f"{word}{number:02d}" for number in range(30) for word in ("ncclFailure", "Xid ", "out of")]
    anchors = Anchors([Anchor(word) for word in (*words, "| consumed samples")])
    before = anchors.search(frozenset(), frozenset())
    dropped = frozenset({len(words)})
    after = anchors.search(dropped, frozenset())
    assert len(after.keys) == len(before.keys)
    moved = [(old, new) for old, new in zip(before.keys, after.keys, strict=True) if old != new]
    assert [old in b"| consumed samples" for old, _ in moved] == [True]
    assert [new in before.keys for _, new in moved] == [True]


@settings(deadline=None)
@given(
    st.lists(st.text("abcde", min_size=1, max_size=9), min_size=1, max_size=90, unique=True),
    st.sets(st.integers(0, 89), max_size=20),
    st.sets(st.integers(0, 89), max_size=6),
)
def test_each_literal_that_still_counts_holds_a_key(words: list[str], dropped: set[int], noisy: set[int]) -> None:
    anchors = Anchors([Anchor(word) for word in words])
    first = anchors.search(frozenset(), frozenset()).keys
    gone = frozenset(index for index in dropped if index < len(words))
    bad = frozenset(first[index] for index in noisy if index < len(first))
    keys = anchors.search(gone, bad).keys
    assert all(
        any(key in literal for key in keys) for index, literal in enumerate(anchors.literals) if index not in gone
    )
    wanted = {literal for index, literal in enumerate(anchors.literals) if index not in gone}
    assert all(key in wanted or key not in bad for key in keys)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_every_line_with_a_rare_anchor_is_found_with_its_number(data: bytes) -> None:
    lines, _, total = read(data, 7_001)
    found = {line.number for line in lines}
    rows = data.split(b"\n")
    for number, row in enumerate(rows, 1):
        if b"ncclFailure07" in row and not any(
            b"ncclFailure07" in row[at : at + 13] and at // scan.SEGMENT_BYTES != (at + 12) // scan.SEGMENT_BYTES
            for at in range(max(0, len(row) - 12))
            if row[at : at + 13] == b"ncclFailure07"
        ):
            assert number in found
    assert total == len(rows) - (rows[-1] == b"")


def test_a_line_of_a_hundred_megabytes_takes_no_memory() -> None:
    filler = b"x" * 1_000_000

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield filler
        yield b"\nboom\n"

    tracemalloc.start()
    (line,) = [one for one in LogScan(Source("a.log", chunks), COMPILED) if one.hit]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (line.number, line.offset, line.text) == (2, 100_000_001, "boom")
    assert peak < 8_000_000


def test_a_shared_key_that_stands_everywhere_is_given_up() -> None:
    keys = choose_keys([f"ncclFailure{number:02d}".encode() for number in range(70)])
    (shared,) = [key for key in keys if key in b"ncclFailure"]
    data = b"ncclFailure\n" * 2_000 + b"ncclFailure33\n"
    anchors = Anchors([Anchor(f"ncclFailure{number:02d}") for number in range(70)])
    anchors.book(None)
    log = LogScan(source(data), anchors)
    assert [line.number for line in log if line.hit] == [2_001]
    assert shared in log._caps.noisy


def test_keys_are_as_few_for_three_hundred_rules_as_a_fast_search_takes() -> None:
    words = ("allocation", "handshake", "collective", "launch", "checkpoint", "kernel")
    hints = [f"{word.title()}Error in {kind}{number}: " for word in words for kind in "ABCDE" for number in range(10)]
    keys = choose_keys([hint.encode() for hint in hints])
    assert len(hints) == 300
    assert len(keys) <= literals.PATTERNS_PER_SEARCH
    assert all(any(key in hint.encode() for key in keys) for hint in hints)


def test_keys_share_buckets_with_their_like() -> None:
    """Teddy sorts its keys by their place modulo 16, and looks twice where the halves of four bytes fit a bucket."""

    def fitting_places(keys: Sequence[bytes]) -> int:
        count = 0
        for bucket in (keys[first::16] for first in range(16)):
            low = [{key[at] & 15 for key in bucket} for at in range(4)]
            high = [{key[at] >> 4 for key in bucket} for at in range(4)]
            fits = [[byte & 15 in low[at] and byte >> 4 in high[at] for byte in range(256)] for at in range(4)]
            count += sum(all(fits[at][ordinary[place + at]] for at in range(4)) for place in range(len(ordinary) - 3))
        return count

    ordinary = ORDINARY.encode()
    chosen = RankLogReader(packaged_rules()).anchors.search(frozenset(), frozenset()).keys
    assert fitting_places(chosen) < 0.01 * len(ordinary)
    assert fitting_places(chosen) < fitting_places(sorted(chosen))


def test_lines_are_counted_alike_with_and_without_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stringzilla", None)
    plain = literals._line_counter()
    block = b"\n\nab\n\0\n\xff\nend"
    for start in range(len(block)):
        for end in range(start, len(block) + 1):
            assert plain(block, start, end) == literals.count_lines(block, start, end) == block[start:end].count(b"\n")


def test_an_anchor_is_part_of_one_line() -> None:
    with pytest.raises(ValueError, match="one line"):
        Anchors([Anchor("two\nlines")])
