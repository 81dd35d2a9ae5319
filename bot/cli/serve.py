"""`mlm serve`: the GitHub App, until SIGTERM or Ctrl-C. Settings come from the environment (docs/operating.md)."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from config.settings import Settings, SettingsError, load_settings, say_unknown

if TYPE_CHECKING:
    from aiohttp import web

#: Seconds that requests in flight get when the server stops; the engine's own grace comes after.
REQUESTS_GRACE_S = 2.0


class EndedError(Exception):
    """The service cannot go on in this process; the message says why."""


class StartRefusedError(Exception):
    """The service cannot start; the message says what to change."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    subparsers.add_parser("serve", help="run the GitHub App", description=__doc__)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop. 0: stopped cleanly, 1: to be started again, 2: a setting is wrong; stderr says why."""
    del options  # there are none: all settings are in the environment
    # First, because a name that is mistyped is a setting that is missing.
    for sentence in say_unknown(os.environ):
        print(sentence, file=sys.stderr)
    try:
        settings = load_settings()
    except SettingsError as error:
        print(*error.lines, sep="\n", file=sys.stderr)
        return 2
    from bot.log import configure_logging  # noqa: PLC0415 (a refused start is quick)

    configure_logging(settings.log_format, secrets=_secrets(settings))
    # What is kept may be a private repository's: nobody else on the machine reads it.
    os.umask(0o077)
    try:
        asyncio.run(_serve(settings))
    except StartRefusedError as error:
        print(error, file=sys.stderr)
        return 2
    except EndedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _secrets(settings: Settings) -> list[str]:
    found = [settings.github_private_key.get_secret_value(), *(one.decode() for one in settings.webhook_secrets)]
    if settings.viewer_token is not None:
        found.append(settings.viewer_token.get_secret_value())
    return found


async def _serve(settings: Settings) -> None:
    import structlog  # noqa: PLC0415
    from aiohttp import web  # noqa: PLC0415

    from bot.app import ANALYSIS, WATCH, build_app  # noqa: PLC0415

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    app = build_app(settings, listen_first=True)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=REQUESTS_GRACE_S)
    log = structlog.get_logger()
    try:
        await _start(runner, settings)
        host, port = runner.addresses[0][:2]
        log.info("serve.listening", url=f"http://{f'[{host}]' if ':' in host else host}:{port}")
        await _meet_github(app, stop)
        # What the start made stays to the end: looking through all of it for garbage held the event loop for 0.1 s.
        gc.freeze()
        warming = asyncio.create_task(app[ANALYSIS].warm())
        await _until_end(stop, app[WATCH].replaced)
        warming.cancel()
        log.info("serve.stopping")
    finally:
        await runner.cleanup()
    log.info("serve.stopped")
    if app[WATCH].replaced.is_set():
        raise EndedError("the database's file was deleted or replaced while the bot ran: start it again")


async def _until_end(stop: asyncio.Event, replaced: asyncio.Event) -> None:
    """Return when we are told to stop, or nothing that we write is kept any more."""
    waits = [asyncio.create_task(event.wait()) for event in (stop, replaced)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _start(runner: web.AppRunner, settings: Settings) -> None:
    """Start all parts and listen.

    Raises:
        StartRefusedError: something outside of us is not as the settings say.
    """
    from aiohttp import web  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from bot.engine.adapter import ExecutorInUseError  # noqa: PLC0415
    from bot.store.tables import SchemaError  # noqa: PLC0415

    try:
        await runner.setup()
    except ExecutorInUseError as error:
        raise StartRefusedError(f"MLM_EXECUTOR_ID: {error}") from None
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
        raise StartRefusedError(f"MLM_DATABASE_URL: the database cannot be used ({reason})") from None
    except SchemaError as error:
        raise StartRefusedError(f"MLM_DATABASE_URL: {error}") from None
    except OSError as error:
        raise StartRefusedError(f"MLM_DATA_DIR: {error.strerror or error}") from None
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
    except OSError as error:
        # asyncio's own text has the address as a tuple; a name that is not found has a number below zero.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
        raise StartRefusedError(
            f"MLM_HOST, MLM_PORT: cannot listen on {settings.host}, port {settings.port}: {why}"
        ) from None


async def _meet_github(app: web.Application, stop: asyncio.Event) -> None:
    """Return once GitHub has answered, could not be reached, or we are told to stop.

    Raises:
        StartRefusedError: GitHub does not accept who we say we are.
    """
    from bot.app import CONTACT, SETTINGS  # noqa: PLC0415
    from handlers.context import RefusedError  # noqa: PLC0415

    first, stopped = asyncio.create_task(app[CONTACT].first()), asyncio.create_task(stop.wait())
    await asyncio.wait([first, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not first.done():
        first.cancel()
        return
    try:
        first.result()
    except RefusedError as error:
        raise StartRefusedError(
            f"MLM_GITHUB_APP_ID, MLM_GITHUB_PRIVATE_KEY: {app[SETTINGS].github_api_url} does not accept them"
            f" ({error.status}: {error.message})"
        ) from None
