"""Take out of log text what a terminal or a browser would act upon instead of showing it."""

from __future__ import annotations

from analyzers.patterns import pattern

#: Colours and cursor moves, window titles and hyperlinks (OSC), other two-byte escapes (ECMA-48).
ANSI = pattern(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
#: Control characters but tab and LF, lone surrogates, bidirectional marks, zero-width and tag characters.
UNSEEN = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
LINE_BREAKS = pattern("\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def clean(text: str) -> str:
    """Return the text as a reader sees it: no colours, no control or invisible characters; lines end at LF."""
    return UNSEEN.sub("", LINE_BREAKS.sub("\n", ANSI.sub("", text)))


def clean_line(text: str) -> str:
    """Like `clean`, on one line: any run of blanks becomes one space."""
    return " ".join(clean(text).split())


def shorten(text: str, limit: int) -> str:
    """Cut to `limit` characters; what is cut is marked by an ellipsis."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"
