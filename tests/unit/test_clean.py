from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.reading.clean import clean, may_have_prefixes, split_prefixes


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\r\n", "plain"),
        (b"tests/a.py::\x1b[1mtest_x\x1b[0m \x1b[31mFAILED\x1b[0m\n", "tests/a.py::test_x FAILED"),
        (b"a.py\x1b[0m:22: AssertionError", "a.py:22: AssertionError"),
        (b"error:\x1b[K identifier", "error: identifier"),
        (b"\xef\xbb\xbfstart", "start"),
        (b"bad \xff byte", "bad \ufffd byte"),
        (b"\x1b]0;title\x07text\x1b[3", "text"),
        (b"a\tb\x00c", "a\tbc"),
    ],
)
def test_a_line_is_cleaned(raw: bytes, text: str) -> None:
    assert clean(raw) == text


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[rank3]:   File x", 3, "  File x"),
        ("[rank12]:[E702 01:10:11 x.cpp:1] y", 12, "[E702 01:10:11 x.cpp:1] y"),
        ("[default0]:    train:", 0, "    train:"),
        ("[default1]:[rank9]: Traceback", 9, "Traceback"),
        ("[1,5]<stderr>:text", 5, "text"),
        ("task-1-0/0 [default0]:text", 0, "text"),
        ("3: text", None, "3: text"),
        ("[2026-01-01 00:00:00] iteration", None, "[2026-01-01 00:00:00] iteration"),
    ],
)
def test_rank_prefixes_are_taken_off(line: str, rank: int | None, text: str) -> None:
    prefixes = split_prefixes(line)
    assert (prefixes.rank, prefixes.text) == (rank, text)


def test_a_bare_number_is_a_rank_only_in_a_woven_file() -> None:
    assert split_prefixes(" 3: text", woven=True).rank == 3


def test_a_stamp_is_utc() -> None:
    prefixes = split_prefixes("2026-12-01T17:16:29.7722265Z Current")
    assert prefixes.at == datetime(2026, 12, 1, 17, 16, 29, 772226, tzinfo=UTC)
    assert prefixes.text == "Current"


PIECES = st.sampled_from(
    [
        *("2026-09-14T08:12:04.5120933Z ", "2026-09-14 08:12:04,1 ", "[rank3]: ", "[default1]:", "[1,2]<stderr>:"),
        *(" 3: ", "3: ", "task-1/0 ", " ", "[", "text", "T", "1"),
    ]
)


@given(st.lists(PIECES, max_size=5).map("".join), st.booleans())
def test_what_may_have_no_prefix_has_none(line: str, woven: bool) -> None:
    taken_off = split_prefixes(line, woven=woven) != (None, None, line, False)
    assert may_have_prefixes(line, woven=woven) or not taken_off
