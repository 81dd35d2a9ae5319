"""`/healthz`: the process answers. `/readyz`: what it needs is there, or what is not. `/metrics`: for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from aiohttp import web

from bot.store.watch import DatabaseAwayError
from bot.web.metrics import Metrics

log = structlog.get_logger()

CHECK_LIMIT_S = 3.0
#: Returns if the part works, raises if not.
Check = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Health:
    """The handlers of the three addresses."""

    checks: Mapping[str, Check]
    depths: Callable[[], Awaitable[Mapping[str, int]]]
    metrics: Metrics
    troubles: Callable[[], Mapping[str, str]] = dict
    limit_s: float = CHECK_LIMIT_S

    async def alive(self, _request: web.Request) -> web.Response:
        """Answer as long as the loop turns."""
        return web.json_response({"alive": True})

    async def ready(self, _request: web.Request) -> web.Response:
        """Answer 200 if all parts work, else 503 with what is wrong, part by part.

        What only slows the work down is told under `degraded` and does not count: a delivery that is taken now is
        worked on later, one that is turned away may be lost.
        """
        answers = await asyncio.gather(*(self._problem(name, check) for name, check in self.checks.items()))
        problems = {name: problem for name, problem in zip(self.checks, answers, strict=True) if problem}
        said = {"ready": not problems, "problems": problems, "degraded": dict(self.troubles())}
        return web.json_response(said, status=503 if problems else 200)

    async def _problem(self, name: str, check: Check) -> str:
        try:
            async with asyncio.timeout(self.limit_s):
                await check()
        except TimeoutError:
            return f"no answer within {self.limit_s:.0f} s"
        except NotReadyError as error:
            return str(error) or "not up yet"
        except Exception as error:  # noqa: BLE001 (a probe tells whatever is wrong)
            # The details may hold addresses and names: they belong into the log, not to whoever asks.
            log.warning("ready.failed", part=name, why=repr(error))
            return type(error).__name__
        return ""

    async def show_metrics(self, _request: web.Request) -> web.Response:
        """Answer with the counters; how many tasks wait is left out while the engine does not answer."""
        try:
            async with asyncio.timeout(self.limit_s):
                depths = await self.depths()
        except Exception as error:  # noqa: BLE001 (the other figures are worth having)
            if not isinstance(error, DatabaseAwayError):  # told already, once
                log.warning("metrics.no_depths", why=repr(error))
            self.metrics.queued.clear()
        else:
            for state, number in depths.items():
                self.metrics.queued.labels(state.lower()).set(number)
        return self.metrics.render()


class NotReadyError(Exception):
    """A part has not come up yet; the message, if there is one, is for whoever asks: no addresses, no names."""
