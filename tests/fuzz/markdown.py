"""Log text, shown in each way that a comment shows it, through real GFM renderers: nothing but text and code.

Two of them: GitHub's own parser (cmark-gfm, as cmarkgfm packs it), and markdown-it, which takes more for a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

from handlers.commands.lines import command_lines
from handlers.render.safe_text import code, fence, prose

GFM = MarkdownIt("gfm-like", {"html": True})
SHOWN: dict[str, Callable[[str], str]] = {
    "code": lambda text: f"before {code(text)} after",
    "prose": lambda text: f"before {prose(text)} after",
    "fence": lambda text: fence(text.split("\n")),
    "in a list": lambda text: f"- {code(text)}: {prose(text)}",
    "in a summary": lambda text: f"<details><summary>x</summary>\n\n{fence(text.splitlines())}\n\n</details>",
}
ALLOWED = {
    "inline",
    "text",
    "code_inline",
    "fence",
    "paragraph_open",
    "paragraph_close",
    "softbreak",
    "bullet_list_open",
    "bullet_list_close",
    "list_item_open",
    "list_item_close",
    "html_block",
    "text_special",
}
#: What GitHub makes of plain text after rendering: mentions, issues, commits, and its own reading of addresses.
LIVE = re.compile(r"@\w|(?<!\w)#\d|\bGH-\d|https?://|www\.|\b[0-9a-f]{7,40}\b|<!--|\[[ x]\]")

#: What cmark-gfm may make of it: paragraphs, lists and code, and the folding of ours.
TAGS = {"p", "ul", "li", "pre", "code", "details", "summary"}
TAG = re.compile(r"<(!?/?[A-Za-z?\[-][^\s>/]*)")
CODE = re.compile(r"<code[^>]*>.*?</code>", re.DOTALL)
#: As GitHub calls it; HTML is let through, so that it would be seen here.
EXTENSIONS = ["table", "autolink", "strikethrough", "tasklist"]
OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES

#: A line that another bot would obey.
OTHERS = re.compile(r"(/[a-z]+\b(?!/)|@[a-z])")


def tokens_of(markdown: str) -> list[tuple[str, str]]:
    found = []
    for token in GFM.parse(markdown):
        found.append((token.type, token.content))
        found += [(child.type, child.content) for child in token.children or ()]
    return found


def github_html(markdown: str) -> str:
    """What GitHub's own parser makes of a comment."""
    return cmarkgfm.markdown_to_html_with_extensions(markdown, options=OPTIONS, extensions=EXTENSIONS)


def run(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")  # lone surrogates, too
    for way in SHOWN:
        check(way, text)


def check(way: str, text: str) -> None:
    markdown = SHOWN[way](text)
    found = tokens_of(markdown)
    assert {kind for kind, _ in found} <= ALLOWED, markdown
    html = [content for kind, content in found if kind == "html_block"]
    assert html in (
        [],
        ["<details><summary>x</summary>\n", "</details>\n"],
        ["<details><summary>x</summary>\n", "</details>"],
    )
    plain = " ".join(content for kind, content in found if kind in {"text", "text_special"})
    assert not LIVE.search(plain), markdown
    made = github_html(markdown)
    tags = [tag.strip("/") for tag in TAG.findall(made)]
    assert {*tags} <= TAGS, made
    assert tags.count("details") == (2 if way == "in a summary" else 0), made
    assert not LIVE.search(re.sub(r"<[^>]*>", "", CODE.sub("", made))), made
    assert "<!--" not in markdown
    assert command_lines(markdown).texts == ()
    raw = [line.strip() for line in markdown.split("\n")]
    assert not [line for line in raw if OTHERS.match(line)], markdown
