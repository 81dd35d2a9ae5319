"""Is this body from GitHub? HMAC-SHA256 over the raw bytes, compared in constant time."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence

#: GitHub writes lower-case hex; anything else was not written by GitHub.
SIGNATURE = re.compile(r"sha256=(?P<hex>[0-9a-f]{64})", re.ASCII)


def may_be_signed(header: str | None) -> bool:
    """Tell whether `header` looks like a signature of GitHub's at all; if not, the body is not worth reading."""
    return SIGNATURE.fullmatch(header or "") is not None


def is_signed(body: bytes, header: str | None, secrets: Sequence[bytes]) -> bool:
    """Tell whether `header` (X-Hub-Signature-256) signs `body` with one of the secrets.

    The older X-Hub-Signature (SHA-1) is never looked at.
    """
    found = SIGNATURE.fullmatch(header or "")
    if found is None:
        return False
    given = found["hex"]
    # No early end: the time taken tells nothing about which secret fits.
    fits = [hmac.compare_digest(given, hmac.digest(secret, body, "sha256").hex()) for secret in secrets if secret]
    return any(fits)
