"""`mlm serve` as a process of its own, against a simulated GitHub in the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from bot.demo.github import SimulatedGitHub

COMMAND = (sys.executable, "-c", "import sys; from bot.cli.main import main; sys.exit(main(['serve']))")

QUEUED = re.compile(r'^mlm_queue_depth\{state="\w+"\} (?P<number>\S+)$', re.MULTILINE)
#: A start takes two seconds of a core, which a busy machine may take a while to give.
START_LIMIT_S = 120.0


def environment(github: SimulatedGitHub, data_dir: Path, **more: str) -> dict[str, str]:
    """The bot's settings as variables, and nothing of the test's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLM_")}
    return (
        kept
        | {
            "MLM_GITHUB_API_URL": github.api_url,
            "MLM_GITHUB_APP_ID": str(github.app_id),
            "MLM_GITHUB_PRIVATE_KEY": github.private_key_pem,
            "MLM_GITHUB_WEBHOOK_SECRET": github.webhook_secret,
            "MLM_DATA_DIR": str(data_dir),
            "MLM_EXECUTOR_ID": "served",
            "MLM_PORT": "0",
            "MLM_WRITE_PAUSE_S": "0",
            "MLM_LABEL_DEBOUNCE_S": "0.2",
            "MLM_SHUTDOWN_GRACE_S": "3",
            "MLM_ANALYSIS_WORKERS": "1",
        }
        | more
    )


async def refused(env: dict[str, str]) -> tuple[int, str]:
    """Start a bot that is expected to refuse; return its exit status and what it said."""
    process = await asyncio.create_subprocess_exec(*COMMAND, env=env, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(30):
        _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


class Served:
    """One run of `mlm serve`: `async with Served(env) as bot` is up, and killed at the end if it still runs.

    `met`: up means that GitHub has been asked who we are, too.
    """

    def __init__(self, env: dict[str, str], *, met: bool = True, command: Sequence[str] = COMMAND) -> None:
        self._env = env
        self._command = command
        self._met = met
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self.lines: list[dict[str, Any]] = []
        self.noise: list[str] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._command, env=self._env, stderr=pipe)
        self._reader = asyncio.create_task(self._read())
        async with asyncio.timeout(START_LIMIT_S):
            await self._up.wait()
        assert self.url, self.noise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens to a process that has ended."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def queued(self) -> int:
        """How many tasks wait or run; -1 while it does not say."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
                session.get(self.url + "/metrics") as answer,
            ):
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return -1
        return sum(int(float(found["number"])) for found in QUEUED.finditer(text))

    async def end(self, number: int) -> int:
        """Send a signal, wait for the end; return the exit status."""
        assert self._process is not None
        assert self._reader is not None
        self.signal(number)
        async with asyncio.timeout(20):
            await self._reader
            return await self._process.wait()

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        async for raw in self._process.stderr:
            try:
                line = json.loads(raw)
            except ValueError:
                self.noise.append(raw.decode(errors="replace"))
                continue
            self.lines.append(line)
            if line["event"] == "serve.listening":
                self.url = line["url"]
            if self.url and (not self._met or self.said("github.connected") or self.said("github.not_connected")):
                self._up.set()
        self._up.set()

    def said(self, event: str) -> list[dict[str, Any]]:
        """The log lines of this name."""
        return [line for line in self.lines if line["event"] == event]
