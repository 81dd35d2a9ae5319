"""The way to the simulated storage, as slow as a real one: one line that all downloads share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web

PIECE_BYTES = 128 * 1024


@dataclass
class Link:
    """`bytes_s` is what all answers together get; each waits `latency_s` for its beginning."""

    bytes_s: float
    latency_s: float
    _free_at: float = 0.0

    async def send(self, request: web.Request, answer: web.Response) -> web.StreamResponse:
        """Send an answer at the speed of the line."""
        await asyncio.sleep(self.latency_s)
        body = answer.body if isinstance(answer.body, bytes) else b""
        sent = web.StreamResponse(status=answer.status, headers=answer.headers)
        sent.content_length = len(body)
        await sent.prepare(request)
        view = memoryview(body)
        for at in range(0, len(view), PIECE_BYTES):
            await self._wait_for(len(view[at : at + PIECE_BYTES]))
            await sent.write(view[at : at + PIECE_BYTES])
        await sent.write_eof()
        return sent

    async def _wait_for(self, size: int) -> None:
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + size / self.bytes_s
        await asyncio.sleep(self._free_at - now)
