"""What broke an entry once, or shows what it is made of, is run through it again: no fuzzer is needed for that."""

from __future__ import annotations

import importlib
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import archives, logs

CORPUS = Path(__file__).parent.parent / "fuzz" / "corpus"
ENTRIES = ("archives", "commands", "logs", "markdown", "webhook")
#: An input tells one thing; a large one slows the search down.
MOST_BYTES = 20_000


def inputs(entry: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted((CORPUS / entry).iterdir())]
    assert len(found) >= 5
    return found


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_corpus_breaks_nothing(entry: str) -> None:
    run = importlib.import_module(f"tests.fuzz.{entry}").run
    for data in inputs(entry):
        assert len(data) <= MOST_BYTES
        run(data)


def test_each_entry_has_its_corpus() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == list(ENTRIES)


@pytest.mark.parametrize("number", [b"9" * 5_000, b"999999999"], ids=["without an end", "of a billion"])
def test_no_number_of_a_log_is_too_large(number: bytes) -> None:
    """A rank, a line, a code, a step: nothing is counted up to it, and Python reads no number of 5,000 digits."""
    for data in inputs("logs"):
        places = [found.span() for found in re.finditer(rb"\d+", data)]
        for begin, end in places[:: max(1, len(places) // 6)]:
            logs.run(data[:begin] + number + data[end:])
    coloured = b"\x0e##[error]Process completed with exit code " + number[:3_000] + b"\x1b[0m" + number[:3_000]
    logs.run(coloured + b".\n")


@pytest.mark.parametrize("piece", ["_", " ", "─", "0", "a.", "a/", "[", "a: ", "│ "])
def test_a_line_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """Four times as long a line may take four times as long; what backtracks takes sixteen times."""

    def took_s(length: int) -> float:
        text = (piece * length)[:length]
        lines = [
            text,
            f"##[error]{text}",
            f"error: {text}",
            f"FAILED {text} - E",
            f"ValueError: {text}",
            f"= 1 failed, {text}",
        ]
        data = "\n".join(lines).encode().replace(logs.END, b"")
        began_s = time.process_time()
        logs.run(
            b"\x0e" + data + logs.END + b"\x02" + data + logs.END + b"\x00Traceback (most recent call last):\n" + data
        )
        return time.process_time() - began_s

    took_s(100)
    assert any(took_s(16_000) < 9 * took_s(4_000) for _ in range(6))


@st.composite
def damaged(draw: st.DrawFn, entry: str) -> bytes:
    """An input of the corpus with a few bytes changed, taken out, doubled, or taken from another one."""
    data = bytearray(draw(st.sampled_from(inputs(entry))))
    other = draw(st.sampled_from(inputs(entry)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 64))
        piece = draw(
            st.binary(max_size=8)
            | st.sampled_from([b"\xff\xff\xff\xff", b"\x00", b"\n", b'"\\ud800"', b"NaN", b"PK\x05\x06", b"\x80\x04"])
            | st.just(other[at : at + length])
        )
        data[at : at + draw(st.integers(0, length))] = piece
    return bytes(data[:MOST_BYTES])


@given(damaged("archives"))
@settings(max_examples=50, deadline=None)
def test_a_damaged_archive_is_read_within_its_limits(data: bytes) -> None:
    archives.run(data)


@given(damaged("logs"))
@settings(max_examples=50, deadline=None)
def test_damaged_logs_are_explained(data: bytes) -> None:
    logs.run(data)
