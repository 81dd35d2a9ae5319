"""JSON that others wrote, without the two things in it that are no text: half a surrogate pair, and NUL.

JSON can escape both, so somebody's comment, label or branch can hold them. Neither can be encoded or stored everywhere
(RFC 8259, 8.2; PostgreSQL's text holds no NUL): they become U+FFFD here, once, and not in each place that would fail.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Only what is escaped can be broken: bytes that are no UTF-8 are no JSON. A whole pair is met too, and stays.
SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
BROKEN = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def load_foreign(body: bytes) -> Any:
    """Return what the JSON document says.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deep.
    """
    document = json.loads(body)
    return _mended(document) if SUSPICIOUS.search(body) else document


def mend_foreign(body: bytes) -> bytes:
    """Return the document such that whoever parses it meets whole text only; what is no JSON comes back as it is."""
    if not SUSPICIOUS.search(body):
        return body
    try:
        return json.dumps(load_foreign(body)).encode()
    except (ValueError, RecursionError):
        return body


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return BROKEN.sub(REPLACEMENT, value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return value
