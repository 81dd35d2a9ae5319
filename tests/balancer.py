"""A plain TCP balancer: each connection goes to the next address, or to the one after it if nobody listens there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Self
from urllib.parse import urlsplit


class Balancer:
    """`async with Balancer(urls) as balancer` listens on `balancer.url`."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = list(urls)
        self.url = ""
        self._next = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            for _ in self.urls:
                target = urlsplit(self.urls[self._next % len(self.urls)])
                self._next += 1
                with contextlib.suppress(OSError):
                    back_reader, back_writer = await asyncio.open_connection(target.hostname, target.port)
                    self._open.add(back_writer)
                    await asyncio.gather(_pump(reader, back_writer), _pump(back_reader, writer))
                    return
        finally:
            self._open.discard(writer)
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
