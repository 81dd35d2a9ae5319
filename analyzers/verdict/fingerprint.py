"""One failure, one fingerprint: whatever differs between two occurrences of the same failure is taken out."""

from __future__ import annotations

from analyzers.model import Error
from analyzers.patterns import pattern

try:  # as `random` does: `hashlib` loads OpenSSL, which takes longer than all our parsers
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # Python 3.11 has it by another name; some builds have neither
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
    except ImportError:
        from hashlib import sha256

#: What changes from run to run: addresses, paths, hosts with ports, ranks, ids, any number.
_VARYING = (
    (pattern(r"0x[0-9a-fA-F]+"), "<hex>"),
    (pattern(r"\b[0-9a-f]{12,64}\b"), "<hex>"),
    (pattern(r"\[?\b(?:\d{1,3}\.){3}\d{1,3}\b\]?(?::\d+)?"), "<host>"),
    (pattern(r"(?:/[\w.@+-]+){2,}/?"), "<path>"),
    (pattern(r"\b[Rr]anks? \d+(?:, ?\d+)*"), "rank <n>"),
    (pattern(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"), "<n>"),
)
_OPERATION = pattern(r"OpType=(\w+)")
_MESSAGE_CHARS = 300


def normalise(message: str) -> str:
    """Return the first line of a message without numbers, paths, addresses, hosts and ranks."""
    text = message.split("\n", 1)[0][:_MESSAGE_CHARS]
    for varying, word in _VARYING:
        text = varying.sub(word, text)
    return " ".join(text.split())


def fingerprint(error: Error, location: str | None, function: str | None = None) -> str:
    """Return 16 hex digits that are the same for the same failure on any rank, host, attempt and shard.

    Args:
        error: type and message of the primary error.
        location: "path:line" of the innermost frame in the repository; the line is left out, as it moves.
        function: the name of the function there, if it is known.
    """
    path = location.rpartition(":")[0] if location else ""
    operation = _OPERATION.search(error.message)
    parts = (error.type or "", normalise(error.message), f"{path}::{function or ''}", operation[1] if operation else "")
    digest: str = sha256("\x00".join(parts).encode()).hexdigest()
    return digest[:16]
