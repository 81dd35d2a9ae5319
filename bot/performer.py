"""Carries out the engine's tasks with what a handler may see of their repository."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bot.contexts import Contexts
from bot.web.precedence import Precedence
from handlers import tasks
from handlers.context import Task


class Performer:
    """Carries out tasks with the context of their repository, when deliveries leave room for it."""

    def __init__(self, contexts: Contexts, precedence: Precedence) -> None:
        self._contexts = contexts
        self._precedence = precedence

    async def perform(self, task: Task) -> Sequence[Task]:
        await self._precedence.give_way()
        with structlog.contextvars.bound_contextvars(task=task.name, key=task.key, repo=task.repo.full_name):
            return await tasks.perform(task, await self._contexts.of(task.repo))

    async def apologize(self, task: Task) -> None:
        with structlog.contextvars.bound_contextvars(task=task.name, key=task.key, repo=task.repo.full_name):
            await tasks.apologize(task, await self._contexts.of(task.repo))
