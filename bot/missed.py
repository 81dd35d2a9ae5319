"""What the sweep for missed deliveries (bot/engine/sweep.py) works with, from the parts of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.engine.adapter import Engine
from bot.engine.locks import lock_for
from bot.engine.sweep import Means
from bot.github.gateway import Gateway
from bot.store.store import NO_REPO, Database
from bot.store.watch import Told
from bot.web.metrics import Metrics
from bot.web.webhook import Slim
from config.settings import Settings
from handlers import events
from handlers.context import Repo, Task

#: Names the lock of the one process that sweeps.
SWEEPER = "sweeper"


@dataclass(frozen=True)
class Parts:
    """The parts of this process that a sweep needs."""

    gateway: Gateway
    engine: Engine
    database: Database
    metrics: Metrics
    settings: Settings


def means_of(parts: Parts, *, slim: Slim, clock: Callable[[], datetime], told: Told) -> Means:
    """Put together what a sweep works with; `slim` decides as it does for the webhook."""
    url = parts.settings.database_url
    return Means(
        look=parts.gateway.survey,
        known=_known(parts.engine),
        accept=parts.engine.accept,
        wanted=events.is_relevant,
        relevant=_needs_work(slim),
        serves=parts.settings.serves,
        memory=parts.database.for_repo(NO_REPO),
        lock=lambda: lock_for(url, SWEEPER),
        clock=clock,
        told=told,
        count=lambda what, number: parts.metrics.sweeps.labels(what).inc(number),
    )


def _known(engine: Engine) -> Callable[[Sequence[tuple[int, str]]], Awaitable[set[str]]]:
    async def known(deliveries: Sequence[tuple[int, str]]) -> set[str]:
        repos = {repo_id: Repo(repo_id, "", 0) for repo_id, _ in deliveries}
        return await engine.known([Task("delivery", repos[repo_id], key=guid) for repo_id, guid in deliveries])

    return known


def _needs_work(slim: Slim) -> Callable[[str, str, Mapping[str, Any]], bool]:
    def needs_work(event: str, delivery_id: str, payload: Mapping[str, Any]) -> bool:
        try:
            return slim(event, delivery_id, payload) is not None
        except ValueError:
            return False  # the webhook would say so, too

    return needs_work
