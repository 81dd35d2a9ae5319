"""Log text in a comment, through a real GFM renderer: whatever it is made of, it makes nothing but text and code."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analyzers.model import Category, Confidence, Diagnosis, Error, Evidence
from handlers.commands.grammar import parse_line
from handlers.commands.lines import command_lines
from handlers.render.safe_text import code, fence, prose

PIECES = (
    "@team",
    "@NVIDIA/core",
    "#1",
    "fixes #12",
    "GH-7",
    "o/r#3",
    "1a2b3c4d5e6f",
    "<img src=x onerror=y>",
    "<!-- mlm-bot:report:",
    "-->",
    "<details>",
    "</details>",
    "<script>",
    "](",
    "![x](http://e.vil/x.png)",
    "[x](javascript:y)",
    "http://e.vil",
    "www.e.vil",
    "a@b.com",
    "`",
    "``",
    "```",
    "~~~",
    "- [ ] x",
    "- [x] y",
    "# head",
    "> quote",
    "| a | b |\n|---|---|",
    "***",
    "---",
    "===",
    "\\",
    "&commat;x",
    "&#64;x",
    "&lt;",
    "\n",
    "\n\n",
    "    ",
    "\t",
    "\r\n",
    "\x1b[31m",
    "\u202e",
    "\u200b",
    "\x00",
    "/mlm rerun all",
    "/ok to test",
    "@dependabot merge",
    "$x$",
    ":smile:",
    "~~s~~",
    "**b**",
    "_i_",
    "1. one",
    "[^1]",
    "[^1]: n",
    "word",
    " ",
    "::add-mask::",
)
LOG_TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=14).map("".join)
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
LIVE = re.compile(r"@\w|(?<!\w)#\d|\bGH-\d|https?:|www\.|\b[0-9a-f]{7,40}\b|<!--|\[[ x]\]")


def tokens_of(markdown: str) -> list[tuple[str, str]]:
    found = []
    for token in GFM.parse(markdown):
        found.append((token.type, token.content))
        found += [(child.type, child.content) for child in token.children or ()]
    return found


@pytest.mark.parametrize("way", SHOWN)
@given(text=LOG_TEXT)
@settings(max_examples=150, deadline=None)
@example(text="- [ ] xwww.e.vil")
@example(text="```\n@team\n```\n# head")
@example(text="` `` ` @team `")
@example(text="<!-- mlm-bot:report:0 -->")
def test_log_text_makes_nothing_but_text_and_code(way: str, text: str) -> None:
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
    assert "<!--" not in markdown
    assert command_lines(markdown).texts == ()


@pytest.mark.parametrize("way", SHOWN)
@given(text=LOG_TEXT)
@settings(max_examples=60, deadline=None)
@example("/a¡")
def test_no_line_of_it_is_a_command_of_another_bot(way: str, text: str) -> None:
    starts = [line.lstrip(" >-*`") for line in SHOWN[way](text).split("\n")]
    raw = [line.strip() for line in SHOWN[way](text).split("\n")]
    assert not [line for line in raw if re.match(r"(/[a-z]+\b(?!/)|@[a-z])", line)], starts


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
@example("/mlm " + "rerun " * 50)
@example("/mlm rerun '" + "a" * 200)
@example("/mlm rerun unit \ud800")
def test_any_text_is_a_command_or_an_answer(text: str) -> None:
    lines = command_lines(text)
    assert len(lines.texts) <= 5
    for line in lines.texts:
        parse_line(line)
    parse_line(text.split("\n", maxsplit=1)[0])


@given(LOG_TEXT, LOG_TEXT)
@settings(max_examples=80, deadline=None)
def test_a_whole_comment_keeps_its_shape(message: str, name: str) -> None:
    """A finding made of hostile text: the report has our own headings and links, and none that came with it."""
    from handlers.render.report import render_report
    from handlers.render.view import Cause, JobView, Report

    diagnosis = Diagnosis(
        passed=False,
        category=Category.UNKNOWN,
        retryable=False,
        confidence=Confidence.LOW,
        summary=message,
        error=Error(name or "E", message),
        failed_tests=(name,) if name else (),
        evidence=Evidence(name or "x", 1, tuple(message.split("\n"))),
    )
    job = JobView(name or "job", "https://github.com/o/r/actions/runs/1/job/2", 1)
    cause = Cause(diagnosis=diagnosis, jobs=(job,))
    report = Report(number=1, head_sha="a" * 40, runs=(), causes=(cause,), unexplained=())
    body = render_report(report)
    kinds = [(kind, content) for kind, content in tokens_of(body)]
    links = [content for kind, content in kinds if kind == "link_open"]
    assert len(body) <= 60_000
    assert not [content for kind, content in kinds if kind == "image"]
    plain = " ".join(content for kind, content in kinds if kind in {"text", "text_special"})
    assert not re.search(r"@\w|\bGH-\d|(?<!\w)#\d", plain), body
    assert len(links) <= 4
