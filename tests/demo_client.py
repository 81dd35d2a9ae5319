"""An App that speaks to the simulated GitHub by itself: for tests of the simulation, without the bot."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import jwt
from aiohttp import web

from bot.demo.github import SimulatedGitHub
from bot.demo.loopback import Site

REPO = "/repos/NVIDIA/Megatron-LM"


class Client:
    """Speaks to the simulated GitHub as an App would, and keeps what it was told."""

    def __init__(self, github: SimulatedGitHub, session: aiohttp.ClientSession) -> None:
        self.github = github
        self.session = session
        self.told: list[tuple[str, bytes, str]] = []
        self.token = ""

    def app_jwt(self) -> str:
        now = int(time.time())
        claims = {"iat": now - 60, "exp": now + 540, "iss": str(self.github.app_id)}
        return jwt.encode(claims, self.github.private_key_pem, algorithm="RS256")

    async def ask(self, method: str, path: str, *, app: bool = False, **more: Any) -> tuple[int, Any]:
        credential = f"Bearer {self.app_jwt()}" if app else f"token {self.token}"
        headers = {"Authorization": credential, "X-GitHub-Api-Version": "2022-11-28"}
        url = self.github.api_url + path
        async with self.session.request(method, url, headers=headers, allow_redirects=False, **more) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else None

    async def hear(self, request: web.Request) -> web.Response:
        event, signature = request.headers["X-GitHub-Event"], request.headers["X-Hub-Signature-256"]
        self.told.append((event, await request.read(), signature))
        return web.Response(status=202)

    async def renew_token(self, **narrowed: Any) -> dict[str, Any]:
        """Ask for an installation token, narrowed as given, and use it from now on."""
        installation = self.github.installation("NVIDIA").id
        path = f"/app/installations/{installation}/access_tokens"
        status, body = await self.ask("POST", path, app=True, json=narrowed)
        assert status == 201, body
        self.token = body["token"]
        return dict(body)


@asynccontextmanager
async def listening_client() -> AsyncIterator[Client]:
    """A client with a token, whose webhooks are heard, of a GitHub with one repository and one maintainer, ada."""
    async with SimulatedGitHub() as github, aiohttp.ClientSession() as session, AsyncExitStack() as ending:
        client = Client(github, session)
        app = web.Application(client_max_size=25 * 1024**2)
        app.router.add_post("/webhook", client.hear)
        bot = Site(app)
        ending.push_async_callback(bot.close)
        github.set_webhook_url(await bot.start() + "/webhook")
        github.add_repo()
        github.add_user("ada", "write")
        await client.renew_token()
        yield client
