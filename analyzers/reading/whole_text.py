"""Text from JSON and pickles may hold half a surrogate pair, which no database, pattern or hash takes."""

from __future__ import annotations


def whole(text: str) -> str:
    """Return the text with a "?" for each half of a pair; what bytes of a log are decoded to never holds one."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
