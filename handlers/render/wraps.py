"""Secrets that a log breaks in two: by the end of a line, by the prefix of a rank, or by both.

torchrun puts a rank's prefix before every piece that it reads, which may begin in the middle of a line; whoever writes
for a terminal breaks lines at its width. Read as one line, such a secret is found as any other. Which of the pieces
behind a break still belong to it is a guess: words, paths and what is separated by blanks do not.

Source: torch 2.13, distributed/elastic/multiprocessing/tail_log.py (a prefix before each piece that was read).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from analyzers.patterns import pattern
from analyzers.records import dataclass

#: Between two pieces. What the runner and torchrun write before a line may follow; without a line's end it must.
BREAK = pattern(
    r"\n[ \t]*(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z )?(?P<rank>\[?(?:default|rank)\d+\]?[:|]?[ ]?)?"
    r"|(?P<inside>(?<=\S)\[(?:default|rank)\d+\]:[ ]?)"
)
#: Without a prefix nothing but its length tells a line that was broken from one that ended.
NARROWEST = 60
PIECE = pattern(r"[\w+/.~!$*%-]+(?:={0,2}|@)", re.ASCII)
#: A piece that something else follows on its line, and that is shorter, may well be a word.
SHORTEST = 6
#: A word with its number, a path, the name of a module.
HARMLESS = pattern(r"[a-z_-]+\d*|[a-z0-9_-]*[./][a-z0-9_./-]*")
#: Kinds that have dots inside; elsewhere a dot is a file's or a module's.
DOTTED = frozenset({"jwt", "github-token", "authorization"})


@dataclass(frozen=True)
class _Broken:
    """Where a break stands in the text, and where in the text without any breaks."""

    start: int
    end: int
    joined: int
    marked: bool  # by a rank's prefix


def redact_wrapped(text: str, kinds: Callable[[str], Sequence[tuple[str, re.Pattern[str]]]]) -> str:
    """Replace secrets that go on behind a break; all others stay for whoever reads line by line.

    `kinds` names those, and what they look like, of which there may be one in a text.
    """
    breaks = list(_breaks(text))
    if not breaks:
        return text
    joined = BREAK.sub("", text)
    spans: list[tuple[int, int, str]] = []
    for kind, secret in kinds(joined):
        for match in secret.finditer(joined):
            span = _span(text, joined, breaks, kind, match)
            if span is not None:
                spans.append((*span, kind))
    shown, reached = [], 0
    for start, end, kind in sorted(spans):
        if start >= reached:
            shown += [text[reached:start], f"[redacted:{kind}]"]
            reached = end
    return "".join([*shown, text[reached:]])


def _breaks(text: str) -> Iterator[_Broken]:
    taken = 0
    for found in BREAK.finditer(text):
        marked = found["rank"] is not None or found["inside"] is not None
        yield _Broken(found.start(), found.end(), found.start() - taken, marked)
        taken += found.end() - found.start()


def _span(text: str, joined: str, breaks: Sequence[_Broken], kind: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where in the text the secret stands with all its pieces; None if it has one piece only."""
    kept = match.groupdict().get("keep")
    begin = match.end("keep") if kept else match.start()
    first = bisect_right(breaks, begin, key=_joined)
    inside = breaks[first : bisect_left(breaks, match.end(), key=_joined)]
    if not inside:
        return None
    ends = [*(one.joined for one in inside[1:]), match.end()]
    last = None
    for broken, end in zip(inside, ends, strict=True):
        if not _goes_on(text, joined[broken.joined : end], broken, kind):
            break
        last = broken.end + end - broken.joined
    if last is None:
        return None
    taken = breaks[first - 1].end - breaks[first - 1].joined if first else 0
    return begin + taken, last


def _joined(broken: _Broken) -> int:
    return broken.joined


def _goes_on(text: str, piece: str, broken: _Broken, kind: str) -> bool:
    line_start = text.rfind("\n", 0, broken.start) + 1
    if not PIECE.fullmatch(piece) or (not broken.marked and broken.start - line_start < NARROWEST):
        return False
    if HARMLESS.fullmatch(piece) or ("." in piece and kind not in DOTTED):
        return False
    end = broken.end + len(piece)
    line_end = text.find("\n", end)
    alone = not text[end : line_end if line_end >= 0 else None].strip("\"',;)}] \t")
    if piece.endswith("@"):
        return True  # the end of what stands before a host's name
    letters, digits = any(map(str.isalpha, piece)), any(map(str.isdigit, piece))
    if alone:
        return (letters and digits) or (piece != piece.lower() and piece != piece.upper())
    return letters and digits and len(piece) >= SHORTEST
