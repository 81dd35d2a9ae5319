"""A simulated GitHub and the real bot, both on loopback sockets; nothing of either is patched."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from bot.app import DATABASE, ENGINE, METRICS, build_app
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Delivery, Pull
from bot.engine.sweep import Rounds
from bot.github.gateway import Limits
from bot.store.store import Database
from config.settings import Settings

#: Seconds; a wait that is longer is cut short once nothing else is left to do.
LONG_S = 2.0
#: A test does not wait for a server's sake; the pauses themselves are tested where they are made.
IMPATIENT = Limits(write_pause_s=0.0, retry_pause_s=0.02, log_pause_s=0.05, longest_stay_s=1.0, calm_s=1.5)


class World:
    """`github` is what the test acts on; the bot answers it over HTTP. See `SimulatedGitHub` for the verbs.

    A story: do something on `github`, `await world.idle()`, look at `world.answers(pull)`.
    """

    def __init__(  # noqa: PLR0913 (each is what some test needs to differ)
        self,
        data_dir: Path,
        *,
        github: SimulatedGitHub | None = None,
        label_debounce_s: float = 0.2,
        database_url: str = "",
        rounds: Rounds | None = None,
        api_url: str = "",
        answer_within_s: float = 60.0,
        repositories: str = "",
        **more: Any,
    ) -> None:
        self.github = github or SimulatedGitHub()
        self.data_dir = data_dir
        self.label_debounce_s = label_debounce_s
        self.database_url = database_url
        self.more = more  # settings that a test needs to differ
        self.rounds = rounds
        self.api_url = api_url
        self.repositories = repositories
        self.limits = replace(IMPATIENT, answer_within_s=answer_within_s)
        self.url = ""
        self._runner: web.AppRunner | None = None

    @property
    def settings(self) -> Settings:
        """What the bot is started with."""
        return Settings(
            github_api_url=self.api_url or self.github.api_url,
            github_app_id=self.github.app_id,
            github_private_key=self.github.private_key_pem,
            github_webhook_secret=self.github.webhook_secret,
            data_dir=self.data_dir,
            database_url=self.database_url,
            executor_id="world",
            port=0,
            label_debounce_s=self.label_debounce_s,
            shutdown_grace_s=1.0,
            sweep_every_s=0,
            repositories=self.repositories,
            analysis_workers=1,
            **self.more,
        )

    @property
    def app(self) -> web.Application:
        """The running application."""
        assert self._runner is not None
        return self._runner.app

    @property
    def database(self) -> Database:
        """The bot's own memory."""
        return self.app[DATABASE]

    async def hurry(self, *, longer_than_s: float = 0.0) -> None:
        """Start now what waits for its time, if that is further away than `longer_than_s`."""
        from dbos import DBOS

        until_ms = (time.time() + longer_than_s) * 1000
        for row in await DBOS.list_workflows_async(status="DELAYED"):
            if (row.delay_until_epoch_ms or 0) >= until_ms:
                await DBOS.set_workflow_delay_async(row.workflow_id, delay_seconds=0.05)

    async def start_bot(self) -> None:
        """Start the bot, and tell GitHub where it is."""
        app = build_app(self.settings, limits=self.limits, rounds=self.rounds)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.github.set_webhook_url(f"{self.url}/webhook")

    async def stop_bot(self) -> None:
        """Stop the bot as SIGTERM does; what it had taken stays in `data_dir`."""
        self.github.set_webhook_url(None)
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.github.start()
        try:
            await self.start_bot()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_bot()
        await self.github.close()

    async def idle(self, *, within_s: float = 30.0) -> None:
        """Return when every delivery has been answered and no task is waiting, running or delayed.

        When nothing is left but to wait for long, the clock is moved: that is not what the stories are about.
        """
        async with asyncio.timeout(within_s):
            while True:
                await self.github.settle()
                depths = await self.app[ENGINE].depths()
                if not sum(depths.values()):
                    await self.github.settle()
                    if not sum((await self.app[ENGINE].depths()).values()):
                        return
                elif depths["DELAYED"] == sum(depths.values()):
                    await self.hurry(longer_than_s=LONG_S)
                await asyncio.sleep(0.05)

    def answers(self, pull: Pull) -> list[str]:
        """The bot's own comments on a pull request, oldest first, as GitHub stores them."""
        return [comment.body for comment in self.github.comments(pull, by_app=True)]

    async def deliver(self, delivery: Delivery) -> int:
        """Deliver again what was delivered before, under its id; return the bot's status."""
        return await self.github.redeliver(delivery)

    async def get(self, path: str) -> tuple[int, str]:
        """GET an address of the bot."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return answer.status, await answer.text()

    def tasks_done(self, name: str, outcome: str = "done") -> int:
        """How many tasks of this name ended so, in this process."""
        return int(self.app[METRICS].tasks.labels(name, outcome)._value.get())
