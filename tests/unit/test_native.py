from __future__ import annotations

import pytest

from analyzers.parsers.native import TIMED_OUT, Crash, NativeReader, signal_name
from analyzers.reading.scan import Line

STACK = (
    "Fatal Python error: Segmentation fault\n\n"
    "Thread 0x00007f (most recent call first):\n"
    '  File "/usr/lib/python3.12/threading.py", line 1 in wait\n\n'
    "Current thread 0x00007e (most recent call first):\n"
    '  File "/opt/megatron-lm/megatron/core/k.py", line 17 in copy\n'
    '  File "/opt/megatron-lm/tests/t.py", line 22 in test_k\n'
)


def read(text: str) -> list[Crash]:
    reader = NativeReader()
    for number, line in enumerate(text.splitlines(), start=1):
        reader.feed(Line(number, 0, line))
    return reader.crashes


def test_the_stack_of_the_thread_that_crashed_outermost_first() -> None:
    (crash,) = read(STACK)
    assert (crash.signal, crash.line) == ("SIGSEGV", 1)
    assert [(frame.line, frame.function) for frame in crash.frames] == [(22, "test_k"), (17, "copy")]


def test_faulthandler_that_crashes_inside_itself_is_one_crash() -> None:
    text = "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
    assert len(read(text + '  File ""Fatal Python error: Segmentation fault\n')) == 1


def test_an_uncaught_cpp_exception_and_its_words_are_one_crash() -> None:
    text = "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check\n"
    (crash,) = read(text + "Fatal Python error: Aborted\n\n")
    assert (crash.signal, crash.exception) == ("SIGABRT", "std::out_of_range")
    assert "vector::_M_range_check" in crash.message


@pytest.mark.parametrize("line", ["double free or corruption (!prev)", "malloc(): unaligned tcache chunk detected"])
def test_the_c_librarys_heap_checks(line: str) -> None:
    assert read(line + "\n")[0].signal == "SIGABRT"


def test_pytest_timeouts_stacks() -> None:
    text = (
        "++++++++++++++ Timeout ++++++++++++++\n~~~~~~~ Stack of Other (12) ~~~~~~~\n"
        '  File "/x/other.py", line 1, in wait\n~~~~~~~ Stack of MainThread (11) ~~~~~~~\n'
        '  File "/opt/megatron-lm/tests/t.py", line 3, in test_slow\n    time.sleep(9)\n'
        "++++++++++++++ Timeout ++++++++++++++\n"
    )
    (crash,) = read(text)
    assert (crash.signal, [frame.function for frame in crash.frames]) == (TIMED_OUT, ["test_slow"])


def test_signals_have_names() -> None:
    assert (signal_name(-9), signal_name(-64), signal_name(1)) == ("SIGKILL", "signal 64", None)
