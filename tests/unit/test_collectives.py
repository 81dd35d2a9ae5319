from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.parsers.collectives import (
    CollectiveReader,
    Kind,
    LastClock,
    clock,
    glog_time,
    read_mismatch,
    read_missing,
)
from analyzers.reading.scan import Line
from tests.logs import watchdog

DUMP = (
    "[E1201 16:55:28.651974333 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump "
    "signal due to a collective timeout from  rank 2 and we will try our best to dump the debug info. Last enqueued "
    "NCCL work: 2, last completed NCCL work: 1.This is most likely caused by incorrect usages of collectives"
)


def read(text: str) -> CollectiveReader:
    reader = CollectiveReader()
    for number, line in enumerate(text.splitlines(), start=1):
        reader.feed(Line(number, 0, line.partition("]:")[2] if line.startswith("[rank") else line))
    return reader


def test_a_watchdogs_line_and_the_group_from_the_next() -> None:
    first = read(watchdog(3, seq=212, op="_ALLGATHER_BASE", numel=384)).events[0]
    assert (first.kind, first.line, first.seq, first.signature) == (Kind.TIMEOUT, 1, 212, "_ALLGATHER_BASE(384, 384)")
    assert first.group == "0(default_pg)"


def test_the_same_words_in_an_exception_are_no_second_timeout() -> None:
    assert [event.kind for event in read(watchdog(0)).events].count(Kind.TIMEOUT) == 1


def test_how_far_a_rank_came() -> None:
    event = read(DUMP).events[0]
    assert (event.kind, event.enqueued, event.completed) == (Kind.STATUS, 2, 1)


@pytest.mark.parametrize("line", ["[E702 01:10:11.5 x.cpp:1] a", "E0702 01:10:11.5 1100 run.py:8] a"])
def test_glog_times_compare(line: str) -> None:
    later = glog_time("[E702 01:10:13.0 x.cpp:1] b")
    earlier = glog_time(line)
    assert later is not None
    assert earlier is not None
    assert later - earlier == pytest.approx(1.5)


def test_clocks_of_the_trainer_are_on_the_same_scale() -> None:
    assert clock("[after training is done] datetime: 2026-07-02 01:10:11.5") == glog_time("[E702 01:10:11.5 x.cpp:1] a")
    assert clock("no time here") is None


@given(
    st.lists(
        st.sampled_from(["[2026-07-02 01:10:11] a", "E702 01:10:12.5 x", "9 of 9", " ", "plain", ""]), max_size=200
    )
)
def test_the_last_clock_is_that_of_the_last_line_that_has_one(texts: list[str]) -> None:
    last = LastClock()
    for text in texts:
        last.feed(text)
    assert last.read() == next((time for text in reversed(texts) if (time := clock(text)) is not None), None)
    last.feed("no clock")
    assert last.read() == next((time for text in reversed(texts) if (time := clock(text)) is not None), None)


def test_the_last_clock_stands_where_thousands_of_lines_follow_it() -> None:
    last = LastClock()
    last.feed("[2026-07-02 01:10:11] a")
    for number in range(5_000):
        last.feed(f"{number} is no clock")
    assert last.read() == clock("[2026-07-02 01:10:11] a")


def test_who_did_not_pass_the_barrier() -> None:
    assert read_missing("Rank 2 failed to pass monitoredBarrier in 600000 ms") == (2,)
    assert read_missing("[Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 600000 ms") == (2, 5)
    assert read_missing("Rank 3 successfully reached monitoredBarrier") == ()


def test_each_rank_tells_its_own_collective_of_a_mismatch() -> None:
    text = (
        "Detected mismatch between collectives on ranks. Rank 3 is running collective: CollectiveFingerPrint("
        "SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[169600], TensorDtypes=Float, x), but Rank 0 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, x)."
    )
    assert read_mismatch(text, 3) != read_mismatch(text, 0)
    assert "169600" in (read_mismatch(text, 3) or "")
