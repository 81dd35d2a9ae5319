"""Lines of passed tests, and the end of a log, are read many at a time: what is found is the same as line by line."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzers.parsers import rank_log
from analyzers.parsers.pytest_ids import PLAIN_RESULTS
from analyzers.parsers.rank_log import RankLogReader
from analyzers.parsers.readings import LogReading
from analyzers.parsers.stream import Words
from analyzers.reading import scan
from analyzers.reading.layout import Kind, place
from analyzers.reading.scan import Alike, Anchor, Anchors, Line, LogScan, Rest, Stretch
from analyzers.records import replace
from bot.diagnose import packaged_rules
from tests.logs import source

CASES = Path(__file__).parent.parent / "cases"
ROW = "tests/unit_tests/a/test_b.py::TestC::test_d"
GREEN, RESET = "\x1b[32m", "\x1b[0m"
PLAIN = [
    *(f"{ROW}_{number} PASSED [ {number}%]\n" for number in range(4)),
    f"{ROW}[tp2-pp1-float16] {GREEN}PASSED{RESET}{GREEN}            [ 10%]{RESET}\n",
    f"{ROW}_skipped \x1b[33mSKIPPED{RESET} (no GPU; none at all)\x1b[33m [ 50%]{RESET}\n",
    f"{ROW}_0 SKIPPED\n",
    f"./{ROW} PASSED\n" * 40,
]
OTHER = [
    f"{ROW}_error PASSED\n",  # the key of an anchor, but no anchor
    f"{ROW}_ERROR PASSED\n",
    f"{ROW}_exitcode PASSED\n",
    f"{ROW}[a b] PASSED\n",
    f"{ROW}[é] PASSED\n",
    f"{ROW} PASSED\r\n",
    f"{ROW} FAILED\n",
    f"{ROW} SKIPPED (FAILED on LTS) [ 3%]\n",
    f"{ROW}_0 ",
    "PASSED\n",
    f"[rank3]: {ROW} PASSED\n",
    f"3: {ROW} PASSED\n",
    "============ test session starts ============\n",
    "=========== FAILURES ===========\n________ TestC.test_d ________\nE   ValueError: no\n",
    "=========== short test summary info ===========\n",
    "Traceback (most recent call last):\n",
    "==== 3 passed in 1.0s ====\n",
    "====== slowest durations ======\n",
    "+++++++++ Timeout +++++++++\n",
    "an ordinary line\n",
    " iteration 7/ 9 | consumed samples: 8 |\n" * 3,
    "\n",
]
TEXTS = st.lists(st.sampled_from(PLAIN * 3 + OTHER), max_size=40).map("".join)
NOTHING = Alike(re.compile(rb"(?!)"), PLAIN_RESULTS.anchors)
READER = RankLogReader(packaged_rules())
READER.anchors.book(None)
#: Caps that a few lines use up.
LOW = Anchors(
    [
        *(Anchor(".py::", most=30), Anchor("PASSED", most=25), Anchor("SKIPPED", after=2, most=9), Anchor("ERROR")),
        Anchor("| consumed samples", most=2, again=True),
    ]
)


Part = Line | Stretch | Rest


def parts(data: str, anchors: Anchors, alike: Alike, chunk_bytes: int) -> tuple[list[Part], list[int], int]:
    log = LogScan(source(data, chunk_bytes=chunk_bytes), anchors, alike=alike)
    return list(log.parts()), log.counts, log.lines


def one_by_one(found: list[Part]) -> list[Line]:
    return [line for part in found for line in ([part] if isinstance(part, Line) else part.lines())]


@settings(deadline=None)
@given(TEXTS, st.integers(20, 3_000), st.sampled_from([READER.anchors, LOW]))
def test_the_lines_and_counts_are_the_same(data: str, chunk_bytes: int, anchors: Anchors) -> None:
    many, counts, lines = parts(data, anchors, PLAIN_RESULTS, chunk_bytes)
    single, counted, number = parts(data, anchors, NOTHING, chunk_bytes)
    assert (one_by_one(many), counts, lines) == (one_by_one(single), counted, number)


@settings(deadline=None)
@given(TEXTS, st.integers(20, 3_000))
@example("====== slowest durations ======\n" + "".join(PLAIN), 3_000)
@example(f"FAILED {ROW} (call)\n" + "".join(PLAIN), 3_000)
def test_what_is_read_of_a_rank_is_the_same(data: str, chunk_bytes: int) -> None:
    fast = read(data, chunk_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_log, "PLAIN_RESULTS", NOTHING)
        assert fast == read(data, chunk_bytes)


def test_the_ends_of_all_cases_logs_are_read_as_if_each_line_were_asked() -> None:
    logs = [one for one in CASES.rglob("*.log") if one.name != "job.log" and one.stat().st_size < 200_000]
    assert len(logs) > 500
    for log in logs[::3]:
        data = log.read_bytes().decode(errors="replace")
        assert read(data, 1 << 20) == read_each(data), log


def read_each(data: str) -> list[Any]:
    """Read with every line of the end handed to every parser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Words, "said_in", lambda _, lines: set(range(len(lines))))
        return read(data, 1 << 20)


def read(data: str, chunk_bytes: int) -> list[Any]:
    where = place("1/attempt_0/3/stdout.log")
    assert where is not None
    assert where.kind is Kind.RANK
    reading = READER.read(source(data, where.name, chunk_bytes=chunk_bytes), where)
    return [flat(reading), reading]


def flat(reading: LogReading) -> list[Any]:
    """Take the outcomes out, in their order: they do not compare."""
    sessions = [session for stream in reading.streams for session in stream.sessions]
    outcomes = [[(*key,) for key in map(fields, session.outcomes.values())] for session in sessions]
    for session in sessions:
        session.outcomes = {}
    return outcomes


def fields(outcome: Any) -> list[Any]:
    return [getattr(outcome, name) for name in outcome.__slots__]


def test_a_long_stretch_is_one() -> None:
    data = "".join(f"{ROW}_{number} PASSED\n" for number in range(500))
    (stretch,) = parts(data, READER.anchors, PLAIN_RESULTS, len(data))[0]
    assert stretch == Stretch(1, 0, data)
    assert [line.offset for line in one_by_one([stretch])][-1] == data.rindex(ROW)


def test_a_line_with_another_anchor_ends_a_stretch_and_one_with_only_its_key_does_not() -> None:
    rows = [f"{ROW}_{number}" for number in range(10)]
    rows[3] += "_error"
    rows[6] += "_exitcode"
    found = parts("".join(f"{row} PASSED\n" for row in rows), READER.anchors, PLAIN_RESULTS, 1 << 20)[0]
    assert [(type(part), part.number) for part in found] == [(Stretch, 1), (Line, 7), (Stretch, 8)]


@pytest.mark.parametrize("filler", [" ", "\x1b[m", "(", ")", "[1%]", "a.py::"])
def test_a_line_without_end_is_not_tried_in_all_ways(filler: str) -> None:
    long_line = f"{ROW} SKIPPED (" + filler * 100_000 + "x\n"
    started = time.process_time()
    for text in (long_line, long_line.replace("SKIPPED (", "PASSED"), filler * 100_000 + "x\n"):
        assert PLAIN_RESULTS.stretch.match(text.encode()) is None
    assert time.process_time() - started < 2


def test_each_line_is_looked_at_once() -> None:
    looked_at: list[int] = []

    class Watched:
        def match(self, block: bytes, start: int, stop: int) -> re.Match[bytes] | None:
            found = PLAIN_RESULTS.stretch.match(block, start, stop)
            looked_at.append(len(found[0]) if found else 0)
            return found

    watched: Any = Watched()
    for name, anchors in (
        ("exitcode", READER.anchors),
        ("plain", LOW),
    ):  # another anchor in each; caps that are reached
        looked_at.clear()
        data = "".join(f"{ROW}_{name}_{number} PASSED\n" for number in range(500))
        found = parts(data, anchors, replace(PLAIN_RESULTS, stretch=watched), len(data))[0]
        assert one_by_one(found) == one_by_one(parts(data, anchors, NOTHING, len(data))[0])
        assert sum(looked_at) <= len(data)
        assert len(looked_at) <= 2


def test_no_stretch_is_looked_for_once_a_cap_is_reached() -> None:
    log = LogScan(source(f"{ROW} PASSED\n" * 40), LOW, alike=PLAIN_RESULTS)
    assert [type(part) for part in log.parts()] == [*[Line] * 30, Rest]
    assert log._stretches is None


def test_the_cap_on_lines_holds_inside_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_LINES", 70)
    data = "".join(f"{ROW}_{number} PASSED\n" for number in range(200))
    found = parts(data, READER.anchors, PLAIN_RESULTS, 1_000)[0]
    assert one_by_one(found) == one_by_one(parts(data, READER.anchors, NOTHING, 1_000)[0])
    assert one_by_one(found)[69].number == 70
