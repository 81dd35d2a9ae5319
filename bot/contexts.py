"""Builds what a handler may see (`handlers.context.Context`) for one repository, from the parts of this process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from cachetools import TTLCache

from bot.analysis import AnalysisPool
from bot.github.gateway import Gateway
from bot.store.store import Database
from config.caps import Caps
from config.repo import PATH, RepoConfig, load_repo_config
from handlers.context import Clock, Context, GitHub, RateLimitedError, RefusedError, Repo

#: A change of `.github/mlm.yml` is obeyed within this many seconds.
CONFIG_KEPT_S = 60.0
CONFIGS_KEPT = 1000
NOT_READY_WAIT_S = 15.0


def _new_cache() -> TTLCache[int, RepoConfig]:
    return TTLCache(maxsize=CONFIGS_KEPT, ttl=CONFIG_KEPT_S)


@dataclass
class Contexts:
    """One per process. `connected` turns true once GitHub has told who we are; `tried` is set once it was asked."""

    gateway: Gateway
    database: Database
    analysis: AnalysisPool
    clock: Clock
    label_debounce_s: float
    caps: Caps = field(default_factory=Caps)
    connected: bool = False
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    _configs: TTLCache[int, RepoConfig] = field(default_factory=_new_cache)

    async def of(self, repo: Repo) -> Context:
        """Return the context of a repository.

        Raises:
            RateLimitedError: GitHub could not be reached yet, or asks us to wait.
        """
        await self.tried.wait()  # work that the last process left begins before the first answer is there
        if not self.connected:
            raise RateLimitedError("GitHub could not be reached yet", after_s=NOT_READY_WAIT_S)
        github, comments, files, checks = self.gateway.for_repo(repo)
        return Context(
            repo=repo,
            github=github,
            comments=comments,
            checks=checks,
            files=files,
            analysis=self.analysis.for_repo(repo.id),
            store=self.database.for_repo(repo.id),
            config=await self._config(repo, github),
            app_slug=self.gateway.app.slug,
            label_debounce_s=self.label_debounce_s,
            report_url=None,
            now=self.clock,
        )

    async def _config(self, repo: Repo, github: GitHub) -> RepoConfig:
        known = self._configs.get(repo.id)
        if known is None:
            try:
                raw = await github.file(PATH)
            except RefusedError:
                # Without the permission to read contents the defaults are right; it is asked again in a minute.
                raw = None
            known = self.caps.over(load_repo_config(raw))
            self._configs[repo.id] = known
        return known
