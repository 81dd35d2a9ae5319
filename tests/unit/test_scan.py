from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzers.reading import scan
from analyzers.reading.scan import Anchor, Anchors, Line, LogScan
from tests.logs import source

ANCHORS = Anchors([Anchor("boom", after=2), Anchor("flood", most=3)])


def read(data: bytes, chunk_bytes: int = 1 << 20) -> list[Line]:
    return list(LogScan(source(data, chunk_bytes=chunk_bytes), ANCHORS))


def test_lines_around_an_anchor_keep_their_numbers_in_a_long_log() -> None:
    noise = b"iteration ok\n" * 100_000
    lines = read(noise + b"boom here\none\ntwo\nthree\n" + noise)
    assert [(line.number, line.text, line.hit) for line in lines[:3]] == [
        (100_001, "boom here", True),
        (100_002, "one", False),
        (100_003, "two", False),
    ]
    assert lines[0].offset == len(noise)
    assert len(lines) == 3 + scan.TAIL_LINES
    assert lines[-1].number == 200_004


def test_the_end_is_told_once_and_with_offsets() -> None:
    data = b"a\nb\nboom\nd"
    lines = read(data)
    assert [(line.number, line.offset, line.text) for line in lines] == [(3, 4, "boom"), (4, 9, "d")]
    assert [(line.number, line.offset, line.text) for line in read(b"a\nb\n")] == [(1, 0, "a"), (2, 2, "b")]


def test_a_flood_is_capped_and_counted() -> None:
    log = LogScan(source(b"flood\n" * 5_000 + b"boom\n"), ANCHORS)
    lines = list(log)
    assert [line.number for line in lines] == [1, 2, 3, 5_001]
    assert log.counts == [1, 3 + 1]  # enough to know it for a flood
    assert log.lines == 5_001


def test_what_goes_on_is_told_again_after_each_other_line_of_interest() -> None:
    anchors = Anchors([Anchor("boom"), Anchor("went on", most=2, again=True)])
    noise = b"went on\n" * 500
    log = LogScan(source(noise + b"boom\n" + noise + b"boom, went on\n" + noise + b"end\n" * 50), anchors)
    assert [line.number for line in log if line.text != "end"] == [1, 2, 501, 502, 503, 1_002, 1_003, 1_004]


def test_it_is_not_told_again_for_ever() -> None:
    anchors = Anchors([Anchor("boom", most=10_000), Anchor("went on", most=2, again=True)])
    told = [line.text for line in LogScan(source(b"boom\nwent on\nwent on\nwent on\n" * 900), anchors)]
    assert told.count("boom") == 900
    assert told.count("went on") == 2 * 201 + 3  # the end, which is always told


def test_a_line_of_many_megabytes_is_cut_around_its_anchor() -> None:
    lines = read(b"x" * 10_000_000 + b" boom " + b"y" * 10_000_000 + b"\nnext\n", chunk_bytes=100_000)
    assert lines[0].number == 1
    assert "boom" in lines[0].text
    assert len(lines[0].text) <= scan.TEXT_BYTES
    assert lines[-1].number == 2


def test_carriage_returns_start_a_line_anew_without_counting() -> None:
    lines = read(b"10%\r20%\r[rank3]: boom\r\nnext\n")
    assert [(line.number, line.text, line.rank) for line in lines] == [(1, "boom", 3), (2, "next", None)]


def test_many_anchors_are_all_found() -> None:
    anchors = Anchors([Anchor(f"word{i:03d}") for i in range(150)])
    lines = list(LogScan(source("".join(f"word{i:03d}\n" for i in range(150))), anchors))
    assert [line.number for line in lines] == list(range(1, 151))


PIECES = st.sampled_from([b"boom", b"flood", b"x" * 50, b"\n", b"\n", b"\r", b"\xff\x1b[31m", b"z" * 70_000])


@given(st.lists(PIECES, max_size=40), st.integers(1, 200_000))
def test_chunk_borders_do_not_matter(pieces: list[bytes], chunk_bytes: int) -> None:
    data = b"".join(pieces)
    assert read(data, max(chunk_bytes, len(data) // 500 + 1)) == read(data)


@given(st.lists(PIECES, max_size=40))
def test_every_number_and_offset_is_true(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    for line in read(data):
        assert data.count(b"\n", 0, line.offset) == line.number - 1
