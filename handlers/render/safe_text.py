"""The only place where text from logs, branches, tests or people becomes Markdown.

Text of others is shown as code: there GitHub makes no mention, link, issue reference, image or HTML of it, and a word
that follows "fixes" closes nothing. What little stays plain is made of letters, digits and harmless punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzers.patterns import pattern

from .clean_text import clean, clean_line, shorten
from .redaction import redact, redact_lines

#: Splits a marker or a foreign command without being seen; log text itself can hold none (see clean_text).
JOINER = "\u2060"
BACKTICKS = pattern("`+")
#: GitHub's parser takes no code span of more than 80 backticks for one, and counts those of a fence to 255
#: (cmark-gfm 0.29: MAXBACKTICKS in inlines.c, fence_length in node.h): no text may make us need so many.
MANY_BACKTICKS = pattern("`{16}(?=`)")
#: Of more runs of ranks than this the rest is counted: every second rank of 512 would fill a page.
MOST_SPANS = 16
#: A word that no Markdown dialect acts upon.
PLAIN_WORD = pattern(r"(?!.*www(?:\.|$))[^\W_](?:[^\W_]|[.,'’%=+-])*", re.IGNORECASE)
#: Plain by its letters, yet linked: a commit, `GH-12`, trackers such as `ABC-12`, and what some readers of Markdown
#: (not GitHub) take for a host: `example.com`, but `attention.py` as well (the default list of linkify-it).
REFERENCE = pattern(
    r"\b[0-9a-f]{7,64}\b|\b[a-z][a-z0-9]*-\d+|\.(?:[a-z]{2}|biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum"
    r"|name|shop|рф|xn--[a-z0-9-]+)\b",
    re.IGNORECASE,
)
OPENING = pattern(r"""^["'(]*""")
CLOSING = """.,;:!?"')"""
#: A line that another bot would obey (`/ok to test`), but not a path.
SLASH_LINE = pattern(r"(?m)^(\s*)(/[A-Za-z][\w-]*(?![\w/-]))")
MENTION_LINE = pattern(r"(?m)^(\s*)(@[A-Za-z])")


def code(text: str, limit: int = 200) -> str:
    """Show text inline and literally; at most `limit` characters of it.

    The span is opened by more backticks than any run inside, so the text cannot close it (CommonMark 6.1).
    """
    shown = _unmarked(shorten(redact(clean_line(text)), limit))
    if not shown:
        return "`(empty)`"
    ticks = "`" * (1 + max((len(run) for run in BACKTICKS.findall(shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def prose(text: str, limit: int = 400) -> str:
    """Show a sentence that may quote a log: plain words stay as they are, anything else is shown as code."""
    parts: list[str] = []
    pending: list[str] = []
    # Backticks of the text itself say "code" as well, and would only make ours longer.
    for word in shorten(redact(clean_line(text.replace("`", ""))), limit).split(" "):
        opening, core, closing = _split(word)
        if core and (REFERENCE.search(core) or not PLAIN_WORD.fullmatch(core)):
            if opening and pending:
                parts.append(_code_of(pending))
            pending = [*([] if opening else pending), core]
            if opening:
                parts.append(opening + "\0")
            if closing:
                parts.append(_code_of(pending) + closing)
                pending = []
            continue
        if pending:
            parts.append(_code_of(pending))
            pending = []
        parts.append(word)
    if pending:
        parts.append(_code_of(pending))
    return " ".join(part for part in parts if part).replace("\0 ", "").replace("\0", "")


def _code_of(words: list[str]) -> str:
    return code(" ".join(words), limit=400)


def _split(word: str) -> tuple[str, str, str]:
    """Split punctuation off a word: `(a/b.py:3),` -> `(`, `a/b.py:3`, `),`."""
    opening = OPENING.match(word)
    start = opening.end() if opening else 0
    end = start + len(word[start:].rstrip(CLOSING))
    return word[:start], word[start:end], word[end:]


def fence(lines: Iterable[str], *, language: str = "text", max_lines: int = 30, max_width: int = 300) -> str:
    """Show an excerpt as a code block that nothing inside can close (CommonMark 4.5)."""
    kept = list(redact_lines(lines))
    left = len(kept) - max_lines
    shown = [shorten(line.rstrip(), max_width) for line in kept[:max_lines]]
    if left > 0:
        shown.append(f"… {left} more lines")
    body = _inert("\n".join(shown))
    ticks = "`" * max(3, 1 + max((len(run) for run in BACKTICKS.findall(body)), default=0))
    return f"{ticks}{language}\n{body}\n{ticks}"


def _unmarked(text: str) -> str:
    """Break what would read as a hidden marker, and runs of backticks that only longer ones could hold."""
    return MANY_BACKTICKS.sub("`" * 16 + JOINER, text.replace("<!--", f"<{JOINER}!--"))


def _inert(text: str) -> str:
    """Break what raw-text readers of a comment look for: hidden markers, other bots' commands and names."""
    return MENTION_LINE.sub(rf"\1{JOINER}\2", SLASH_LINE.sub(rf"\1{JOINER}\2", _unmarked(text)))


def link(label_markdown: str, url: str) -> str:
    """Link to an address of GitHub's API; anything that is no plain https address is left out."""
    safe = re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d+)?/[A-Za-z0-9._~/?#=&%+@!:-]*", url)
    return f"[{label_markdown}]({url})" if safe else label_markdown


def commit(sha: str) -> str:
    """Show a commit's short name, not as a link."""
    return code(clean(sha)[:7], limit=7)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`3 jobs`, `1 job`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def ranks(numbers: Iterable[int]) -> str:
    """`0-3, 5`: runs of ranks are drawn together; of many runs the first are named."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    told = ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in spans[:MOST_SPANS])
    more = sum(high - low + 1 for low, high in spans[MOST_SPANS:])
    return f"{told} and {more} more" if more else told
