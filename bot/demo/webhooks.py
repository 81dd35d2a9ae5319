"""Signed webhooks to the App, and the log of their deliveries.

Deliveries leave one by one in the order of the events, which is kinder than GitHub (it promises no order) and keeps
tests repeatable. As on GitHub, a failed delivery is not tried again until somebody asks for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from typing import Any

import aiohttp

from bot.demo.access import ENTERPRISE_VERSION
from bot.demo.shapes_repo import node_id, repo_json, user_json
from bot.demo.state import App, Delivery, Repo, State, User

Json = dict[str, Any]
#: GitHub counts a delivery as failed after 10 s (domain 2.1).
ANSWER_WITHIN_S = 10.0
#: The answer for a host that cannot be reached or does not answer in time.
NO_ANSWER = 502


def sign(secret: str, body: bytes) -> str:
    """The value of X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Webhooks:
    """Sends what `emit` is given to every App that is installed on the repository and subscribed to the event."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN_S))
        self._worker = asyncio.create_task(self._work())

    async def close(self) -> None:
        if self._worker:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        if self._session:
            await self._session.close()

    def emit(  # noqa: PLR0913 - the parts of an event
        self, repo: Repo, event: str, action: str, sender: User, fields: Json, *, only_app: int | None = None
    ) -> list[Delivery]:
        """Queue one delivery per subscribed App; `fields` is what the event carries beside the common envelope."""
        sent = []
        for installation in self._state.installations_on(repo):
            app = self._state.apps[installation.app_id]
            if event not in app.events or only_app not in {None, app.id}:
                continue
            payload = {
                "action": action,
                **fields,
                "repository": repo_json(self._state, repo),
                "sender": user_json(self._state, sender),
                "installation": {"id": installation.id, "node_id": node_id("IN", installation.id)},
            }
            delivery = self.record(app, event, payload, guid=str(uuid.uuid4()))
            self._queue.put_nowait(delivery)
            sent.append(delivery)
        return sent

    def record(self, app: App, event: str, payload: Json, *, guid: str, redelivery: bool = False) -> Delivery:
        """A new entry in the log, not sent yet."""
        delivery = Delivery(
            id=self._state.next_id("delivery"),
            guid=guid,
            app_id=app.id,
            event=event,
            action=payload.get("action"),
            payload=payload,
            repo_id=payload.get("repository", {}).get("id"),
            installation_id=payload.get("installation", {}).get("id"),
            delivered_at=self._state.clock(),
            redelivery=redelivery,
        )
        self._state.deliveries.append(delivery)
        return delivery

    async def settle(self) -> None:
        """Return when every queued delivery has been answered."""
        await self._queue.join()

    def queue_again(self, delivery: Delivery) -> Delivery:
        """Queue the same event under the same GUID, as a new entry in the log."""
        app = self._state.apps[delivery.app_id]
        again = self.record(app, delivery.event, delivery.payload, guid=delivery.guid, redelivery=True)
        self._queue.put_nowait(again)
        return again

    async def _work(self) -> None:
        while True:
            delivery = await self._queue.get()
            try:
                await self.send(delivery)
            finally:
                self._queue.task_done()

    async def send(self, delivery: Delivery, *, headers: dict[str, str] | None = None) -> int:
        """POST the delivery now and return the App's status; `headers` override ours (to send a wrong signature)."""
        app = self._state.apps[delivery.app_id]
        body = json.dumps(delivery.payload).encode()
        delivery.request_headers = self._headers(app, delivery, body) | (headers or {})
        started = time.monotonic()
        delivery.status_code, delivery.status, delivery.response = await self._post(app, body, delivery.request_headers)
        delivery.duration_s = time.monotonic() - started
        return delivery.status_code

    async def _post(self, app: App, body: bytes, headers: dict[str, str]) -> tuple[int, str, str]:
        if app.webhook_url is None or self._session is None:
            return NO_ANSWER, "failed to connect to host", ""
        try:
            async with self._session.post(app.webhook_url, data=body, headers=headers) as answer:
                text = await answer.text()
                status = "OK" if answer.ok else f"Invalid HTTP Response: {answer.status}"
                return answer.status, status, text
        except TimeoutError:
            return NO_ANSWER, "timed out", ""
        except aiohttp.ClientError:
            return NO_ANSWER, "failed to connect to host", ""

    def _headers(self, app: App, delivery: Delivery, body: bytes) -> dict[str, str]:
        sha1 = hmac.new(app.webhook_secret.encode(), body, hashlib.sha1).hexdigest()
        server = {"X-GitHub-Enterprise-Host": "github.example.com", "X-GitHub-Enterprise-Version": ENTERPRISE_VERSION}
        return {
            **(server if self._state.enterprise else {}),
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/simulated",
            "X-GitHub-Delivery": delivery.guid,
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Hook-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature": f"sha1={sha1}",
            "X-Hub-Signature-256": sign(app.webhook_secret, body),
        }
