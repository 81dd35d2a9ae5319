"""What has to be there before this process may take deliveries: the checks of `/readyz`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.contact import Contact
from bot.contexts import Contexts
from bot.engine.adapter import Engine
from bot.github.clock import GitHubClock
from bot.store.watch import Watch
from bot.web.health import Check, NotReadyError


@dataclass(frozen=True)
class Readiness:
    """Each check raises `NotReadyError` with words for whoever asks."""

    watch: Watch
    engine: Engine
    contexts: Contexts
    contact: Contact
    clock: GitHubClock

    @property
    def checks(self) -> Mapping[str, Check]:
        """The checks by the name of the part."""
        return {"database": self._database, "engine": self._engine, "github": self._github}

    def troubles(self) -> Mapping[str, str]:
        """Return what only slows the work down, by kind."""
        return self.contexts.gateway.weather.troubles() | self.clock.troubles()

    async def depths(self) -> Mapping[str, int]:
        """Return how much work is in each state; not asked for while the database is known to be away."""
        self.watch.refuse()
        return await self.engine.depths()

    async def _database(self) -> None:
        if trouble := await self.watch.look():
            raise NotReadyError(trouble)

    async def _engine(self) -> None:
        if await self.watch.look():
            raise NotReadyError("without its database")
        await self.engine.check()

    async def _github(self) -> None:
        if not self.contexts.connected:
            raise NotReadyError(self.contact.why)
