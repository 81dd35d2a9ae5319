"""pytest's node ids and result words, as they stand in its lines."""

from __future__ import annotations

from collections.abc import Iterator

from analyzers.patterns import pattern
from analyzers.reading.lines import Alike, Stretch

RESULTS = ("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS")

#: `path.py::Class::test`, without the parameters; the path may be absolute under `--rootdir`.
_HEAD = pattern(r"(?P<id>[\w./+@-]+\.py::[\w:.<>-]+)(?P<bracket>\[)?")
#: A result stands at the end, or before "(reason)", "[ 10%]" or both. "ERROR:logger:..." is a log line glued to the id.
_RESULT = pattern(rf"\s*(?P<result>{'|'.join(RESULTS)})(?:\s+\(.*\)|\s+- .*)?(?:\s*\[\s*\d+%\])?\s*$")
_WORKER = pattern(r"^\[gw\d+\](?: \[ *\d+%\])? (?P<result>[A-Z]+) (?P<id>\S+\.py::.+)$")
#: Whatever may come often is bounded: a line of a megabyte must not be tried in all ways.
_COLOUR = r"(?:\x1b\[[\d;]{0,9}m){0,4}"
#: A line as most are: nothing in it needs a second look, and nothing before it is a stamp or the prefix of a rank.
_PLAIN = (
    r"[a-z./][\w./+@-]{0,400}\.py::[\w:.<>-]{1,400}(?:\[[!-Z^-~\\]{0,400}\])?"
    rf" {_COLOUR}(?:PASSED|SKIPPED(?:{_COLOUR} \([ -9;-~]{{0,400}}\))?){_COLOUR}"
    rf" {{0,400}}(?:\[ {{0,2}}\d{{1,3}}%\])?{_COLOUR} {{0,9}}\n"
)
#: Many such lines one after the other.
PLAIN_RESULTS = Alike(pattern(f"(?:{_PLAIN})+".encode()), (".py::", "PASSED", "SKIPPED"))


def read_results(stretch: Stretch) -> Iterator[tuple[str, str, int, int]]:
    """Yield node id, result, number and offset of each line of `PLAIN_RESULTS`, as `read_progress` reads them."""
    offset = stretch.offset
    for number, text in enumerate(stretch.text[:-1].split("\n"), stretch.number):
        node_id, _, rest = text.partition(" ")
        yield node_id, "SKIPPED" if "SKIPPED" in rest else "PASSED", number, offset
        offset += len(text) + 1


def split_id(text: str) -> tuple[str, str] | None:
    """Split a line that begins with a node id into the id and the rest; parameters may hold blanks and brackets."""
    head = _HEAD.match(text)
    if head is None:
        return None
    if not head["bracket"]:
        return head["id"], text[head.end() :]
    close = text.find("]", head.end())
    if close >= 0 and text.find("[", head.end(), close) < 0:  # as nearly always
        return text[: close + 1], text[close + 1 :]
    depth = 0
    for place in range(head.end() - 1, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return text[: place + 1], text[place + 1 :]
    return text.strip(), ""  # cut in the middle of the parameters


def read_progress(text: str) -> tuple[str, str | None] | None:
    """Read a progress line: (node id, result), the result None while the test runs; None for any other line."""
    if ".py::" not in text:
        return None
    if text.startswith("[gw") and (worker := _WORKER.match(text)):
        return worker["id"].strip(), worker["result"] if worker["result"] in RESULTS else None
    parts = split_id(text)
    if parts is None or (parts[1] and not parts[1].startswith(" ")):
        return None
    result = _RESULT.match(parts[1])
    return parts[0], result["result"] if result else None


def read_bare_result(text: str) -> str | None:
    """Read a line that holds only a result: what a test printed came between it and its id."""
    result = _RESULT.match(text)
    return result["result"] if result else None


def section_name(node_id: str) -> str:
    """Return the name that pytest's report gives to a test: `Class.test[param]`."""
    return node_id.partition("::")[2].replace("::", ".", node_id.partition("[")[0].count("::"))


def whole_test(title: str) -> str:
    """Return the title of the test that a subtest is a part of: without ` [message] (parameters)` behind it."""
    title = title.rstrip()
    message, parameters = title.find(" ["), title.find(" (")
    begin = -1
    if title.endswith(")"):
        both = message >= 0 and max(title.find("](", message), title.find("] (", message)) >= 0
        begin = message if both and (message < parameters or parameters < 0) else parameters
    elif title.endswith("]"):
        begin = message
    return title if begin < 0 else title[:begin]
