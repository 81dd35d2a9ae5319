"""Which lines of a comment are commands: plain text at the top level that starts with `/mlm`, and nothing else.

Quoted, fenced, indented, linked or hidden text is none, so a bot's or a person's quotation never runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_COMMANDS = 5
MAX_LINE = 300
#: A comment of GitHub's own maximal length is read whole; anything longer is no comment of GitHub.
MAX_BODY = 65_536
#: At most three blanks: more is indented text.
COMMAND = re.compile(r" {0,3}(?:/mlm-bot|/mlm|@mlm-bot)(?:\[bot\])?(?=[\s.,:;!?]|$)[.,:;!]?(?P<rest>.*)", re.IGNORECASE)
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
    """Find the commands of a comment's Markdown."""
    if "mlm" not in body[:MAX_BODY].casefold():
        return Lines(())
    tokens = _markdown().parse(body[:MAX_BODY].replace("\r\n", "\n").replace("\r", "\n"))
    texts = [
        _plain(inline.children or [])
        for opener, inline in pairwise(tokens)
        if opener.type == "paragraph_open" and opener.level == 0
    ]
    matches = [COMMAND.match(line.translate(ASCII)) for text in texts for line in text.split("\n")]
    found = [" ".join(match["rest"].split()) for match in matches if match]
    return Lines(tuple(found[:MAX_COMMANDS]), max(0, len(found) - MAX_COMMANDS))


def _markdown() -> MarkdownIt:
    """CommonMark whose inline rules leave `**`, `_` and line breaks as typed: test patterns are full of them."""
    return MarkdownIt("commonmark").disable(["emphasis", "newline", "entity", "escape"])


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
        elif child.type == "code_inline" and links == 0 and COMMAND.match(line.translate(ASCII)):
            # A selector in backticks is natural; as the first word it makes the line a quotation.
            part = _word(child.content)
        parts.append(part)
        _, newline, after = part.rpartition("\n")
        line = (after if newline else line + part)[:FIRST_WORD]
    return "".join(parts)


def _word(text: str) -> str:
    """What stands in backticks is one word."""
    return f'"{text}"' if " " in text and '"' not in text else text
