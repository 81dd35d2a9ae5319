"""Which lines of a comment are commands: plain text at the top level that starts with `/mlm`, and nothing else.

Quoted, fenced, indented, linked or hidden text is none, so a bot's or a person's quotation never runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_COMMANDS = 5
MAX_LINE = 300
#: A comment of GitHub's own maximal length is read whole; anything longer is no comment of GitHub.
MAX_BODY = 65_536
#: At most three blanks: more is indented text.
COMMAND = re.compile(r" {0,3}(?:/mlm-bot|/mlm|@mlm-bot)(?:\[bot\])?(?=[\s.,:;!?]|$)[.,:;!]?(?P<rest>.*)", re.IGNORECASE)
#: Whatever else it holds, a text without such a line holds no command. How many blanks count is `COMMAND`'s to say.
BEGINNING = re.compile(r"^[^\S\n]*(?:/mlm|@mlm-bot)", re.IGNORECASE | re.MULTILINE)
#: So many characters of a comment are read with their links, which take up to 20 times as long as all else that a line
#: can hold; of what is beyond, a line within any brackets is no command.
LINKS_WITHIN = 2_048
#: Brackets that stand deeper in others than this make no link. GitHub allows more; nobody writes it, but each level
#: is read once more.
DEEPEST = 8
#: More than the blanks, the name and the mark after it that make a line a command.
FIRST_WORD = 32
#: Stands for what is no plain text, so that a line that starts with it is no command.
OPAQUE = "\ufffc"
#: What phones and editors make of plain quotes, dashes and blanks.
ASCII = str.maketrans(
    {
        "\u00a0": " ",
        "\u202f": " ",
        "\u2007": " ",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2212": "-",
        "\u2014": "--",
        "\u2015": "--",
    }
)


@dataclass(frozen=True)
class Lines:
    """The command lines of a comment without their `/mlm`; `dropped` counts those beyond `MAX_COMMANDS`."""

    texts: tuple[str, ...]
    dropped: int = 0


def command_lines(body: str) -> Lines:
    """Find the commands of a comment's Markdown. What a stranger can make of a comment costs a second at most."""
    body = body[:MAX_BODY].replace("\r\n", "\n").replace("\r", "\n")
    if not BEGINNING.search(body):
        return Lines(())
    references: dict[str, Any] = {}
    found = [
        " ".join(match["rest"].split())
        for paragraph in _paragraphs(body, references)
        for line in _plain_lines(paragraph, references, links=paragraph.end <= LINKS_WITHIN)
        if (match := _command(line))
    ]
    return Lines(tuple(found[:MAX_COMMANDS]), max(0, len(found) - MAX_COMMANDS))


@dataclass(frozen=True)
class Paragraph:
    """One that may hold commands; `end` is how many characters all of these have had up to its end."""

    text: str
    end: int


def _paragraphs(body: str, references: dict[str, Any]) -> Iterator[Paragraph]:
    """Find the paragraphs at the top level that may hold commands; only these are worth a closer look."""
    end = 0
    for opener, inline in pairwise(_blocks().parse(body, references)):
        if opener.type == "paragraph_open" and opener.level == 0 and BEGINNING.search(inline.content):
            end += len(inline.content)
            yield Paragraph(inline.content, end)


def _plain_lines(paragraph: Paragraph, references: dict[str, Any], *, links: bool) -> list[str]:
    """Return the lines as they read without what is no plain text; those that hold no command may be missing."""
    (inline,) = _inlines(links=links).parseInline(paragraph.text, references)
    lines = _plain(inline.children or []).split("\n")
    if links:
        return lines
    opened = next((number for number, line in enumerate(lines) if "[" in line), len(lines))
    closed = max((number for number, line in enumerate(lines) if "]" in line), default=0)
    return [line for number, line in enumerate(lines) if not opened < number <= closed]


def _command(line: str) -> re.Match[str] | None:
    return COMMAND.match(line.translate(ASCII)) if BEGINNING.match(line) else None


@cache
def _blocks() -> MarkdownIt:
    """CommonMark without a look into the lines of its blocks."""
    return MarkdownIt("commonmark").disable("inline")


@cache
def _inlines(*, links: bool) -> MarkdownIt:
    """CommonMark whose inline rules leave `**`, `_` and line breaks as typed: test patterns are full of them."""
    left_out = ["emphasis", "newline", "entity", "escape", *(() if links else ("link", "image"))]
    return MarkdownIt("commonmark", {"maxNesting": DEEPEST}).disable(left_out)


def _plain(children: Sequence[Token]) -> str:
    parts: list[str] = []
    # What stands on the current line; only its first word matters, so a line of many parts is not read again for each.
    line = ""
    links = 0
    for child in children:
        links += child.nesting if child.type.startswith("link_") else 0
        if child.type == "link_close":
            continue
        part = OPAQUE
        if child.type == "text" and links == 0:
            part = child.content
        elif child.type == "code_inline" and links == 0 and _command(line):
            # A selector in backticks is natural; as the first word it makes the line a quotation.
            part = _word(child.content)
        parts.append(part)
        _, newline, after = part.rpartition("\n")
        line = (after if newline else line + part)[:FIRST_WORD]
    return "".join(parts)


def _word(text: str) -> str:
    """What stands in backticks is one word."""
    return f'"{text}"' if " " in text and '"' not in text else text
