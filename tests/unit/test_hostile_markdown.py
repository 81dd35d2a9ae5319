"""Log text in a comment, through a real GFM renderer: whatever it is made of, it makes nothing but text and code."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzers.model import Category, Confidence, Diagnosis, Error, Evidence
from handlers.commands.grammar import parse_line
from handlers.commands.lines import command_lines
from tests.fuzz.markdown import SHOWN, check, github_html, tokens_of

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


@pytest.mark.parametrize("way", SHOWN)
@given(text=LOG_TEXT)
@settings(max_examples=150, deadline=None)
@example(text="- [ ] xwww.e.vil")
@example(text="```\n@team\n```\n# head")
@example(text="` `` ` @team `")
@example(text="<!-- mlm-bot:report:0 -->")
@example(text="/a¡")
def test_log_text_makes_nothing_but_text_and_code(way: str, text: str) -> None:
    check(way, text)


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
    made = github_html(body)
    assert re.findall(r'<a href="([^"]*)"', made) == ["https://github.com/o/r/actions/runs/1/job/2"] * len(links)
    assert not re.search(r"<(img|input|script|table|h[4-6]|blockquote|del|sup|!--)", made), made
