"""The end of a log is taken in one: what is read of it is the same as with every line handed to every parser."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzers.parsers.pytest_report import Outcome
from analyzers.parsers.stream import Stream, Words
from analyzers.reading.layout import place
from analyzers.reading.scan import Line, Rest
from analyzers.rules import RuleSet
from bot.diagnose import packaged_rules

RULES = packaged_rules()
WORDS = Words(RULES)
PLACE = place("1/attempt_0/3/stderr.log")
TEST = "tests/unit_tests/a/test_b.py::TestC::test_d"
TEXTS = ["", " ", f"{TEST} "] + [
    text.replace("TEST", TEST)
    for text in r"""
plain
a | consumed samples
 [2026-07-02 01:10:11] iteration   7/ 9 | consumed samples
[2026-07-02 01:10:12] a
E702 01:10:12.5 x.py:1] late
9 of 9
=
!
é
ValueError: x
    code()
TEST PASSED
PASSED
ERROR TEST (setup)
rootdir: /opt
==== 3 passed in 1.0s ====
===== FAILURES =====
____ test_d ____
E   ValueError: no
!!!! Interrupted: 1 error !!!!
FAILED TEST
===== test session starts =====
ImportError while loading conftest '/opt/a/conftest.py'.
!!!!! exit !!!!!
Traceback (most recent call last):
  File "/opt/a.py", line 3
SyntaxError: no
Exception ignored in: <f>
The above exception was the direct cause of the following exception:
-- Process 3 terminated with the following error:
During handling of the above exception, another exception occurred:
  | Traceback (most recent call last):
INTERNALERROR> Traceback (most recent call last):
+++++ Timeout +++++
Timeout (0:01:00)!
Fatal Python error: Aborted
Current thread 0x1 (most recent call first):
  File "/opt/a.py", line 3 in f
terminate called after throwing an instance of 'c10::Error'
  what():  no
double free or corruption (out)
python: a.c:3: f: Assertion `x' failed.
*** stack smashing detected ***: terminated
free(): invalid size
[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran
[PG ID 0 PG GUID 0(default_pg) Rank 3] Last enqueued NCCL work: 2, last completed NCCL work: 1.
> rank: 3, world_size: 8
using world size: 8
[after training is done] datetime: 2026-03-01 00:00:01
exiting program at iteration 9
ERROR: usage: x
a.py: error: unrecognized arguments: --x
NCCL WARN no
RuntimeError: CUDA error: an illegal memory access was encountered
Killed
CUDA out of memory.
""".splitlines()[1:]
]
LINES = st.builds(Line, st.just(0), st.just(0), st.sampled_from(TEXTS), by_torch=st.sampled_from([False] * 5 + [True]))


@settings(deadline=None, max_examples=600)
@given(st.lists(LINES, max_size=4), st.lists(LINES, max_size=9))
@example([Line(0, 0, f"{TEST} ")], [Line(0, 0, "PASSED")])
@example(
    [Line(0, 0, "-- Process 3 terminated with the following error:")],
    [Line(0, 0, "Traceback (most recent call last):")],
)
def test_the_end_is_read_as_if_each_line_were_asked(before: list[Line], rest: list[Line]) -> None:
    numbered = [line._replace(number=number, offset=number) for number, line in enumerate([*before, *rest], 1)]
    at_once, each = stream(RULES), stream(RULES)
    for line in numbered[: len(before)]:
        at_once.feed(line)
    at_once.feed_rest(Rest(tuple(numbered[len(before) :])), WORDS)
    for line in numbered:
        each.feed(line)
    assert flat(at_once) == flat(each)


@pytest.mark.parametrize("rules", [RULES, RuleSet([])], ids=["with rules", "without"])
def test_each_text_before_each_other(rules: RuleSet) -> None:
    words = Words(rules)
    for first, second in product(TEXTS, TEXTS):
        lines = (Line(1, 0, first), Line(2, 9, second))
        at_once, each = stream(rules), stream(rules)
        at_once.feed_rest(Rest(lines), words)
        for line in lines:
            each.feed(line)
        assert flat(at_once) == flat(each), (first, second)


def test_ordinary_lines_are_not_asked() -> None:
    texts = [
        "a plain word",
        " [2026-07-02 01:10:11] iteration   7/ 9 | consumed samples",
        "NCCL INFO Channel 02/0 : 0[0]",
    ]
    assert WORDS.said_in([Line(number, 0, text) for number, text in enumerate(texts)]) == set()


def test_the_lines_of_words_are_told_by_their_places() -> None:
    texts = ["é", "ERROR: a", "", "plain", "=", "NCCL WARN b", "last"]
    assert WORDS.said_in([Line(0, 0, text) for text in texts]) >= {1, 4}
    assert not WORDS.said_in([Line(0, 0, text) for text in texts]) & {0, 2, 3, 6}


def stream(rules: RuleSet) -> Stream:
    assert PLACE is not None
    return Stream(PLACE, 3, rules)


def flat(read: Stream) -> list[Any]:
    """Take everything apart that was read: outcomes of tests do not compare."""
    told = read.end(100)
    outcomes = [[fields(one) for one in session.outcomes.values()] for session in told.sessions]
    for session in told.sessions:
        session.outcomes = {}
    return [told, outcomes]


def fields(outcome: Outcome) -> list[Any]:
    return [getattr(outcome, name) for name in outcome.__slots__]
