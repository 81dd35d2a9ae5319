"""`GET /`: closed (404) unless a viewer token is set; with it, one line that the bot runs and where to look."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass

from aiohttp import web

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>mlm-bot</title>
<p>mlm-bot is running. <a href="/readyz">Is it ready?</a> <a href="/metrics">Metrics</a></p></html>
"""


@dataclass(frozen=True)
class Index:
    """The handler. A browser asks for the token as the password of any user name."""

    viewer_token: str | None

    async def show(self, request: web.Request) -> web.Response:
        """Show the page to whoever knows the token."""
        if self.viewer_token is None:
            raise web.HTTPNotFound
        if not self._knows_token(request.headers.get("Authorization", "")):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="mlm-bot"'})
        return web.Response(
            text=PAGE, content_type="text/html", headers={"Content-Security-Policy": "default-src 'none'"}
        )

    def _knows_token(self, header: str) -> bool:
        kind, _, given = header.partition(" ")
        if kind.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except ValueError:
                return False
        # Bytes of a header that are no text come as halves of pairs.
        said = given.strip().encode(errors="surrogateescape")
        return hmac.compare_digest(said, (self.viewer_token or "").encode())
