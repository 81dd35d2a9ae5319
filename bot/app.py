"""The aiohttp application: each part is built once, in the order in which they need each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import structlog
from aiohttp import web

from bot.analysis import REASONS, AnalysisPool
from bot.contact import Contact
from bot.contexts import Contexts
from bot.engine.adapter import EndingError, Engine
from bot.engine.settings import EngineSettings
from bot.engine.sweep import Rounds, keep_sweeping
from bot.engine.workflows import APOLOGY
from bot.github.clock import GitHubClock
from bot.github.gateway import Connection, Gateway, Limits
from bot.github.shelf import Room, files_folder
from bot.lookout import Lookout
from bot.missed import Parts, means_of
from bot.performer import Performer
from bot.readiness import Readiness
from bot.store.forgetting import keep_forgetting
from bot.store.store import Database
from bot.store.watch import Watch
from bot.web.admission import Admission
from bot.web.health import Health, NotReadyError
from bot.web.index import Index
from bot.web.metrics import Metrics
from bot.web.precedence import Precedence
from bot.web.strangers import Strangers
from bot.web.webhook import MAX_BODY, Slim, Webhook
from config.settings import Settings
from handlers import events
from handlers.context import Event, Task
from handlers.tasks import TASKS

log = structlog.get_logger()

SETTINGS = web.AppKey("settings", Settings)
METRICS = web.AppKey("metrics", Metrics)
SESSION = web.AppKey("session", aiohttp.ClientSession)
GATEWAY = web.AppKey("gateway", Gateway)
CLOCK = web.AppKey("clock", GitHubClock)
DATABASE = web.AppKey("database", Database)
WATCH = web.AppKey("watch", Watch)
ANALYSIS = web.AppKey("analysis", AnalysisPool)
CONTEXTS = web.AppKey("contexts", Contexts)
CONTACT = web.AppKey("contact", Contact)
ENGINE = web.AppKey("engine", Engine)
LIMITS = web.AppKey("limits", Limits)
ADMISSION = web.AppKey("admission", Admission)
PRECEDENCE = web.AppKey("precedence", Precedence)
STRANGERS = web.AppKey("strangers", Strangers)
ROUNDS = web.AppKey("rounds", Rounds)

#: A second after we are told to stop, whoever still waits for the database is answered, while that can be done.
LAST_ACCEPT_S = 1.0
#: Seconds without a byte; the time that a large download takes in all is not limited.
SILENCE_LIMIT_S = 60.0


def build_app(
    settings: Settings, *, limits: Limits | None = None, rounds: Rounds | None = None, listen_first: bool = False
) -> web.Application:
    """Build the service; nothing is opened before it starts.

    Args:
        limits, rounds: how to deal with GitHub, and when to look for what was missed, where a demo or a test must not
            be as patient as the settings say.
        listen_first: do not wait for GitHub before the app listens; the caller looks at `app[CONTACT].first()`.
    """
    # One byte more than GitHub sends: aiohttp refuses a body of exactly the limit.
    app = web.Application(client_max_size=MAX_BODY + 1)
    app[SETTINGS] = settings
    app[METRICS] = Metrics()
    app[CLOCK] = GitHubClock(_now)
    app[METRICS].clock.set_function(app[CLOCK].ahead_s)
    app[ADMISSION] = Admission()
    app[PRECEDENCE] = Precedence()
    app[STRANGERS] = Strangers()
    app[LIMITS] = limits or _limits(settings)
    app[ROUNDS] = rounds or Rounds(settings.sweep_every_s, pause_s=settings.write_pause_s)
    # The engine before the contact: whether we may run here at all is known at once, GitHub may take long.
    app.cleanup_ctx.extend([_session, _database, _analysis, _gateway, _engine, _contact, _lookout, _sweep])
    if not listen_first:
        app.cleanup_ctx.append(_first_contact)
    app.on_shutdown.append(_turn_away)
    token = settings.viewer_token
    app.router.add_get("/", Index(token.get_secret_value() if token else None).show)
    app.router.add_post("/webhook", _deliver)
    app.router.add_get("/healthz", _alive)
    app.router.add_get("/readyz", _ready)
    app.router.add_get("/metrics", _show_metrics)
    return app


def _limits(settings: Settings) -> Limits:
    return Limits(
        write_pause_s=settings.write_pause_s,
        max_artifact_bytes=settings.download_max,
        room=Room(max_bytes=settings.downloads_keep),
    )


def _now() -> datetime:
    return datetime.now(UTC)


async def _session(app: web.Application) -> AsyncIterator[None]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=SILENCE_LIMIT_S)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
        app[SESSION] = session
        yield


async def _database(app: web.Application) -> AsyncIterator[None]:
    settings = app[SETTINGS]
    await asyncio.to_thread(settings.data_dir.mkdir, parents=True, exist_ok=True)
    database = await Database.open(settings.database_url, clock=app[CLOCK])
    watch = Watch(database.ping, show=app[METRICS].database.set)
    app[DATABASE], app[WATCH] = database, watch
    rounds = [
        asyncio.create_task(one) for one in (watch.keep_looking(), keep_forgetting(database, watch, app[CLOCK].earlier))
    ]
    logging.getLogger("dbos").addFilter(watch.is_news)
    yield
    logging.getLogger("dbos").removeFilter(watch.is_news)
    for one in rounds:
        one.cancel()
    await asyncio.gather(*rounds, return_exceptions=True)
    await database.close()


async def _analysis(app: web.Application) -> AsyncIterator[None]:
    settings = app[SETTINGS]
    folder = files_folder(settings.data_dir)
    workers, limit_s = settings.analysis_workers, settings.analysis_limit_s
    failures = {reason: app[METRICS].analyses.labels(reason) for reason in REASONS}  # shown from the start
    pool = app[ANALYSIS] = AnalysisPool(
        workers=workers, limit_s=limit_s, folder=folder, observe=lambda reason: failures[reason].inc()
    )
    yield
    await pool.close()


async def _gateway(app: web.Application) -> AsyncIterator[None]:
    settings = app[SETTINGS]
    gateway = Gateway(
        app[SESSION],
        Connection(
            api_url=settings.github_api_url,
            app_id=settings.github_app_id,
            private_key=settings.github_private_key.get_secret_value(),
            webhook_secrets=[secret.decode() for secret in settings.webhook_secrets],
            extra_download_hosts=settings.download_hosts,
        ),
        data_dir=settings.data_dir,
        clock=app[CLOCK],
        limits=app[LIMITS],
        observe=lambda said: app[METRICS].github.labels(said).inc(),
        show_trouble=lambda kind, number: app[METRICS].troubles.labels(kind).set(number),
        dated=app[CLOCK].hear,
        reader=app[ANALYSIS],
    )
    contexts = Contexts(gateway, app[DATABASE], app[ANALYSIS], app[CLOCK], settings.label_debounce_s, settings.caps)
    app[GATEWAY], app[CONTEXTS] = gateway, contexts
    yield
    await gateway.close()


async def _contact(app: web.Application) -> AsyncIterator[None]:
    contact = app[CONTACT] = Contact(app[CONTEXTS])
    contact.begin()
    yield
    await contact.end()


async def _first_contact(app: web.Application) -> AsyncIterator[None]:
    await app[CONTACT].first()
    yield


async def _engine(app: web.Application) -> AsyncIterator[None]:
    settings, metrics = app[SETTINGS], app[METRICS]
    # Shown from the start: Prometheus' increase() does not see what a figure begins with, and this one's is an alarm.
    for name in (*TASKS, APOLOGY):
        metrics.tasks.labels(name, "gave_up")

    def observe(task: Task, outcome: str, took_s: float) -> None:
        metrics.tasks.labels(task.name, outcome).inc()
        metrics.task_seconds.labels(task.name).observe(took_s)

    performer = Performer(app[CONTEXTS], app[PRECEDENCE])
    engine = Engine(
        EngineSettings(
            database_url=settings.database_url, executor_id=settings.executor_id, grace_s=settings.shutdown_grace_s
        ),
        perform=performer.perform,
        apologize=performer.apologize,
        observe=observe,
        count_rescued=metrics.rescued.inc,
        told=app[WATCH].told,
    )
    await engine.start()
    app[ENGINE] = engine
    yield
    await engine.close()


async def _lookout(app: web.Application) -> AsyncIterator[None]:
    lookout = Lookout(app[GATEWAY], app[ENGINE], every_s=app[LIMITS].look_every_s, told=app[WATCH].told)
    rounds = [asyncio.create_task(one) for one in (lookout.keep_asking(), lookout.keep_hurrying())]
    yield
    for one in rounds:
        one.cancel()
    await asyncio.gather(*rounds, return_exceptions=True)


async def _turn_away(app: web.Application) -> None:
    """Let those who wait for the database have their answer before their connections are closed."""
    asyncio.get_running_loop().call_later(LAST_ACCEPT_S, app[ENGINE].turn_away)


async def _sweep(app: web.Application) -> AsyncIterator[None]:
    settings, contexts, rounds = app[SETTINGS], app[CONTEXTS], app[ROUNDS]
    if not rounds.every_s:
        yield
        return
    parts = Parts(app[GATEWAY], app[ENGINE], app[DATABASE], app[METRICS], settings)
    means = means_of(parts, slim=_slim(app), clock=app[CLOCK], told=app[WATCH].told)
    sweeping = asyncio.create_task(keep_sweeping(means, rounds, lambda: contexts.connected))
    yield
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


def _slim(app: web.Application) -> Slim:
    contexts, settings = app[CONTEXTS], app[SETTINGS]

    def slim(event: str, delivery_id: str, payload: Mapping[str, Any]) -> Event | None:
        if not contexts.connected:
            raise NotReadyError
        app_slug = contexts.gateway.app.slug
        found = events.slim(event, delivery_id, payload, app_slug=app_slug, app_id=settings.github_app_id)
        if found is not None and not settings.serves(found.repo.id, found.repo.full_name):
            app[STRANGERS].note(found.repo)
            return None
        return found

    return slim


def _webhook(app: web.Application) -> Webhook:
    database, watch, engine = app[DATABASE], app[WATCH], app[ENGINE]

    async def accept(task: Task) -> bool:
        watch.refuse()
        try:
            with app[PRECEDENCE].storing():
                new = await engine.accept(task)
        except EndingError as error:
            raise NotReadyError(str(error)) from None
        database.file.check()  # afterwards: what was written into a file without a name is not accepted
        return new

    return Webhook(app[SETTINGS].webhook_secrets, _slim(app), accept, app[METRICS], app[ADMISSION], watch.told)


async def _deliver(request: web.Request) -> web.Response:
    return await _webhook(request.app).answer(request)


async def _alive(request: web.Request) -> web.Response:
    return await _health(request.app).alive(request)


async def _ready(request: web.Request) -> web.Response:
    return await _health(request.app).ready(request)


async def _show_metrics(request: web.Request) -> web.Response:
    return await _health(request.app).show_metrics(request)


def _health(app: web.Application) -> Health:
    parts = Readiness(app[WATCH], app[ENGINE], app[CONTEXTS], app[CONTACT], app[CLOCK])
    return Health(parts.checks, parts.depths, app[METRICS], troubles=parts.troubles)
