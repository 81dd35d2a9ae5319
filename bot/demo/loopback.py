"""An aiohttp application on a loopback port of its own."""

from __future__ import annotations

from aiohttp import web


class Site:
    """Serves `app` on 127.0.0.1; `url` is known once started."""

    def __init__(self, app: web.Application, *, port: int = 0) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        self._port = port
        self.url = ""

    async def start(self) -> str:
        """Listen and return the base URL, without a slash at its end.

        Raises:
            OSError: the port is taken.
        """
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self.url

    async def close(self) -> None:
        await self._runner.cleanup()
