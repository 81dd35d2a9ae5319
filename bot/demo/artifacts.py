"""Zips of log artifacts, and the store that serves them: another origin than the API, by signed URLs.

The store behaves like the blob storage behind GitHub (domain 2.5): a URL lives one minute, a request that carries an
Authorization header is refused, and byte ranges are served.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
import zipfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from aiohttp import web

from bot.demo.link import Link
from bot.demo.loopback import Site
from bot.demo.state import State
from bot.demo.traffic import Traffic

#: A ready zip, a folder to pack, or the members by name.
Content = bytes | Path | Mapping[str, bytes | str]
URL_LIVES = timedelta(seconds=60)
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(content: Content) -> bytes:
    """The bytes of the zip; bytes pass unchanged, so that a test can upload a broken one."""
    if isinstance(content, bytes):
        return content
    members = content if isinstance(content, Mapping) else _read_tree(content)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)  # the same members make the same bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def _read_tree(root: Path) -> dict[str, bytes]:
    if root.is_file():
        return {root.name: root.read_bytes()}
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def count_members(data: bytes) -> int:
    """How many files the zip holds; 0 when it is not a zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return len(archive.namelist())
    except zipfile.BadZipFile:
        return 0


class SignedStore:
    """Serves blobs to whoever holds a fresh signed URL."""

    def __init__(self, state: State, traffic: Traffic) -> None:
        self._state = state
        self._traffic = traffic
        self._key = secrets.token_bytes(32)
        self._blobs: dict[str, tuple[bytes, str]] = {}
        #: Each content is hashed once: for a large one that takes longer than a part of it does on the line.
        self._digests: dict[bytes, str] = {}
        self.link: Link | None = None  # None: as fast as this machine is
        app = web.Application()
        app.router.add_get("/blob/{key}/{name}", self._serve)
        self._site = Site(app)

    async def start(self) -> str:
        return await self._site.start()

    async def close(self) -> None:
        await self._site.close()

    def put(self, data: bytes, *, name: str, content_type: str) -> str:
        """Keep the bytes and return a URL that works for a minute."""
        key = hashlib.sha256(f"{self._digest(data)}{name}".encode()).hexdigest()[:32]
        self._blobs[key] = (data, content_type)
        expires = int((self._state.clock() + URL_LIVES).timestamp())
        return f"{self._site.url}/blob/{key}/{name}?se={expires}&sig={self._sign(key, expires)}"

    def _digest(self, data: bytes) -> str:
        if data not in self._digests:
            self._digests[data] = hashlib.sha256(data).hexdigest()
        return self._digests[data]

    def _sign(self, key: str, expires: int) -> str:
        return hmac.new(self._key, f"{key}:{expires}".encode(), hashlib.sha256).hexdigest()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        seen = self._traffic.record("storage", request, b"")
        faulted = await self._traffic.before(request)
        answer = faulted if faulted is not None else self._answer(request)
        seen.status = answer.status
        if self.link is not None:
            return await self.link.send(request, answer)
        return await self._traffic.after(request, answer)

    def _answer(self, request: web.Request) -> web.Response:
        if "Authorization" in request.headers:
            why = "Authentication information is not given in the correct format."
            return _refusal(400, "InvalidAuthenticationInfo", why)
        key, expires = request.match_info["key"], request.query.get("se", "0")
        signature = request.query.get("sig", "")
        if not expires.isdecimal() or not hmac.compare_digest(signature, self._sign(key, int(expires))):
            return _refusal(403, "AuthenticationFailed", "Signature did not match.")
        if self._state.clock().timestamp() > int(expires):
            return _refusal(403, "AuthenticationFailed", "Signature not valid in the specified time frame.")
        data, content_type = self._blobs[key]
        headers = {"Accept-Ranges": "bytes", "Content-Type": content_type, "ETag": f'"{self._digest(data)[:16]}"'}
        return _ranged(request, data, headers)


def _ranged(request: web.Request, data: bytes, headers: dict[str, str]) -> web.Response:
    try:
        wanted = request.http_range
    except ValueError:
        return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
    if wanted.start is None and wanted.stop is None:
        return web.Response(body=data, headers=headers)
    first, last, _ = wanted.indices(len(data))
    if first >= len(data):
        return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
    headers["Content-Range"] = f"bytes {first}-{last - 1}/{len(data)}"
    return web.Response(status=206, body=data[first:last], headers=headers)


def _refusal(status: int, code: str, message: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return web.Response(status=status, text=text, content_type="application/xml", headers={"x-ms-error-code": code})
