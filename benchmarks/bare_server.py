"""The floor: an aiohttp handler that verifies a delivery's signature and writes one row, and does nothing else.

usage: python benchmarks/bare_server.py DATABASE_URL SECRET   (prints its address)
"""

from __future__ import annotations

import asyncio
import hmac
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
from aiohttp import web

POSTGRES_POOL = 8


def main() -> None:
    url, secret = sys.argv[1:]
    asyncio.run(serve(url, secret.encode()))


async def serve(url: str, secret: bytes) -> None:
    write = sqlite_writer(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else await postgres_writer(url)

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        expected = "sha256=" + hmac.digest(secret, body, "sha256").hex()
        if not hmac.compare_digest(expected, request.headers.get("X-Hub-Signature-256", "")):
            return web.Response(status=401)
        await write(request.headers["X-GitHub-Delivery"], body)
        return web.Response(status=202)

    app = web.Application(client_max_size=25 * 1024**2)
    app.router.add_post("/webhook", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


def sqlite_writer(path: str):  # noqa: ANN201
    thread = ThreadPoolExecutor(1)
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE row (id TEXT PRIMARY KEY, body BLOB)")
    connection.commit()

    def insert(key: str, body: bytes) -> None:
        with connection:
            connection.execute("INSERT OR IGNORE INTO row VALUES (?, ?)", (key, body))

    async def write(key: str, body: bytes) -> None:
        await asyncio.get_running_loop().run_in_executor(thread, insert, key, body)

    return write


async def postgres_writer(url: str):  # noqa: ANN201
    free: asyncio.Queue[psycopg.AsyncConnection] = asyncio.Queue()
    for _ in range(POSTGRES_POOL):
        free.put_nowait(await psycopg.AsyncConnection.connect(url, autocommit=True))
    first = await free.get()
    await first.execute("CREATE TABLE IF NOT EXISTS row (id TEXT PRIMARY KEY, body BYTEA)")
    free.put_nowait(first)

    async def write(key: str, body: bytes) -> None:
        connection = await free.get()
        try:
            await connection.execute("INSERT INTO row VALUES (%s, %s) ON CONFLICT DO NOTHING", (key, body))
        finally:
            free.put_nowait(connection)

    return write


if __name__ == "__main__":
    main()
