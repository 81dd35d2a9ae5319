"""No line of a log holds a pattern up: what it costs grows with the line's length and not faster."""

from __future__ import annotations

import importlib
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from analyzers import patterns
from analyzers.parsers import pytest_ids, pytest_report
from analyzers.verdict import reason
from tests.near_matches import near_matches

ROOT = Path(__file__).parents[2]
#: Four times as long as the text of a line gets: what grows faster than its length is seen at once.
LONG = 32 * 1024
#: Of this process, whatever else runs on the machine; what is linear takes a tenth of it at most.
MOST_S = 0.25
QUICK, QUICK_S = 2 * 1024, 0.0004
#: What is only asked about the last part of a file's name.
SHORT = {"analyzers.reading.layout._JUNIT": 255}
#: How those are used that another module calls.
USED = {"analyzers.parsers.pytest_ids.PLAIN_RESULTS": {"match"}}
CALLS = re.compile(
    r"\b(?P<name>_*[A-Z]\w*)(?:\[[^\]]*\])?\.(?P<call>search|match|fullmatch|finditer|findall|sub|split)\("
)


def _patterns(folder: str) -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Yield each pattern of a module: where it stands, itself, and how the module uses it."""
    seen: set[int] = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        module = importlib.import_module(place)
        calls: dict[str, set[str]] = {}
        for found in CALLS.finditer(path.read_text()):
            calls.setdefault(found["name"], set()).add(found["call"])
        for name, value in vars(module).items():
            for each in _flat(value):
                if id(each) in seen:
                    continue  # only imported here
                seen.add(id(each))
                yield f"{place}.{name}", each, calls.get(name) or USED.get(f"{place}.{name}", {"search"})


def _flat(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, (patterns._Later, re.Pattern)):
        yield cast("re.Pattern[Any]", value)
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _flat(one)


def _way(one: re.Pattern[Any], calls: set[str]) -> Callable[[Any], object]:
    """Return the most costly of the ways in which a pattern is used."""
    if calls <= {"match"}:
        return one.match
    if calls <= {"match", "fullmatch"}:
        return one.fullmatch
    return one.findall if calls & {"findall", "finditer", "sub", "split"} else one.search


@contextmanager
def _ended_after(limit_s: float) -> Iterator[None]:
    """Give up what takes longer than this much of our own time: it may take for ever."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _cost_s(way: Callable[[Any], object], one: re.Pattern[Any], text: str) -> float:
    line = text if isinstance(one.pattern, str) else text.encode("latin-1", "replace")
    begun = time.process_time()
    try:
        with _ended_after(4 * MOST_S):
            way(line)
    except TimeoutError:
        return 4 * MOST_S
    return time.process_time() - begun


@pytest.mark.parametrize("folder", ["analyzers", "handlers"])
def test_no_near_match_holds_a_pattern_up(folder: str) -> None:
    slow: dict[str, str] = {}
    tried = 0
    for place, one, calls in _patterns(folder):
        way = _way(one, calls)
        for near in near_matches(one.pattern, one.flags):
            tried += 1
            # Most are done at once: only the rest is looked at closely.
            if _cost_s(way, one, near.text(QUICK)) > QUICK_S and all(
                _cost_s(way, one, near.text(SHORT.get(place, LONG))) > MOST_S for _ in range(2)
            ):
                slow[place] = near.text(60)
                break
    assert slow == {}
    assert tried > 3000


def _pieces(*words: str) -> Iterator[str]:
    chance = random.Random(3)
    for _ in range(20_000):
        yield "".join(chance.choices(words, k=chance.randrange(1, 10)))


def test_a_subtests_line_and_title_are_read_as_by_trying_all_ways() -> None:
    """The plain patterns take cubic time; these are quick, and find the same."""
    line = re.compile(r"^SUBFAIL(?:ED)?(?:\[.*?\])?(?: ?\(.*?\))? (?=\S+\.py::)")
    title = re.compile(r" (?:\[.*\] ?)?(?:\(.*\))?$")
    matched = 0
    for words in _pieces("[", "]", "(", "](", " (", ") ", "] ", ")", " ", "a.py::t", "x", "] ("):
        text = f"SUBFAILED{words}"
        plain, quick = line.match(text), pytest_report._SUBTEST.match(text)
        assert (plain and plain.end()) == (quick and quick.end()), text
        matched += plain is not None
        text = f"T.a{words}".rstrip()
        assert pytest_ids.whole_test(text) == title.sub("", text)
    assert matched > 500


def test_a_reason_is_found_as_by_trying_all_ways() -> None:
    plain = re.compile(
        r"(?P<why>Assertion `.*failed|\S+(?:\(\d+\)|:\d+:\d+): (?:fatal )?error: .*|\S+: not found$"
        r"|\S.*: [Nn]o space left on device\b.*|\S+: undefined symbol: .*|ptxas (?:fatal|error) +: .*)"
    )
    matched = 0
    for text in _pieces(
        *("a", " ", "b(1)", ":1:2", ": error: x", ": fatal error: ", " : not found", ": not found", "\t", "no space"),
        *(": No space left on device", "ptxas error : ", ": undefined symbol: q", "Assertion `x", "failed"),
    ):
        slow, quick = plain.search(text), reason._REASON.search(text)
        assert (slow and slow.span("why")) == (quick and quick.span("why")), text
        matched += slow is not None
    assert matched > 5000
