"""`mlm demo` as a person starts and stops it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import aiohttp


async def start_demo(temp: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; from bot.cli.main import main; sys.exit(main())",
        "demo",
        "--no-browser",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temp)},
    )


async def test_it_says_where_it_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = await start_demo(tmp_path, "--port", "0")
    assert demo.stdout is not None
    async with asyncio.timeout(60):
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", (await demo.stdout.readline()).decode())):
            assert demo.returncode is None
    async with aiohttp.ClientSession() as session, session.get(found[0]) as answer:
        assert answer.status == 200
        assert "#42" in await answer.text()
    demo.send_signal(signal.SIGINT)
    _, errors = await asyncio.wait_for(demo.communicate(), 30)
    assert (demo.returncode, errors.decode()) == (0, "")
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        demo = await start_demo(tmp_path, "--port", port)
        _, errors = await asyncio.wait_for(demo.communicate(), 60)
    assert demo.returncode == 2
    assert errors.decode() == f"--port {port}: Address already in use\n"
