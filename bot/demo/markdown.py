"""Comments as GitHub would show them: GitHub-flavoured Markdown with HTML, sanitized."""

from __future__ import annotations

import nh3
from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": True})
_TAGS = frozenset(
    [
        "a",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "ins",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "tt",
        "ul",
    ]
)
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"alt", "title"},  # no src: the page loads nothing from elsewhere
    "code": {"class"},
    "details": {"open"},
    "td": {"align"},
    "th": {"align"},
    "ol": {"start"},
}


def render_markdown(text: str) -> str:
    """HTML that holds no script, no style, no comment and nothing that loads by itself."""
    return nh3.clean(
        _MARKDOWN.render(text),
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
