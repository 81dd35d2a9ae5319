"""Repositories that send us deliveries and are not ours: told once each, and then ignored in silence."""

from __future__ import annotations

import threading

import structlog
from cachetools import LRUCache

from handlers.context import Repo

log = structlog.get_logger()

#: Forgotten beyond that, so that a flood of names takes no memory.
MOST = 1000


class Strangers:
    """One per process; large deliveries are looked at in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: LRUCache[int, bool] = LRUCache(maxsize=MOST)

    def note(self, repo: Repo) -> None:
        """Tell of a repository that is not on the list of those that we serve, the first time."""
        with self._lock:
            new = repo.id not in self._told
            self._told[repo.id] = True
        if new:
            log.warning("delivery.not_ours", repo=repo.full_name, repo_id=repo.id, installation=repo.installation_id)
