"""`mlm demo`: the App as it is served in production, against an embedded simulated GitHub, with a page to watch it.

Everything listens on loopback only; keys and secrets are made at the start, and all data is removed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
import webbrowser
from pathlib import Path

PORT = 8000
LAST_PORT = 65_535


class PortTakenError(Exception):
    """The page cannot listen where it was asked to."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("demo", help="run the App against a simulated GitHub", description=__doc__)
    parser.add_argument(
        "--port", type=_port, help=f"port of the page (default: {PORT}, or a free one if that is taken)"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    parser.add_argument("--verbose", action="store_true", help="show the bot's log")


def _port(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 0 to {LAST_PORT}")
    return int(word)


def run(options: argparse.Namespace) -> int:
    """Run until Ctrl-C. 0: stopped cleanly, 2: the port that was asked for cannot be used."""
    from bot.log import configure_logging  # noqa: PLC0415 (`--help` is quick)

    configure_logging("console")
    if not options.verbose:
        logging.getLogger().setLevel(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory(prefix="mlm-demo-") as folder:
            asyncio.run(_demo(options, Path(folder)))
    except PortTakenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def _demo(options: argparse.Namespace, data_dir: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as parts:
        url = await _start(parts, options.port, data_dir)
        print(f"\n  The demo is at {url}  (Ctrl-C stops it)\n", flush=True)
        if not options.no_browser:
            await asyncio.to_thread(webbrowser.open, url)
        await stop.wait()
        print("Stopping ...", flush=True)


async def _start(parts: contextlib.AsyncExitStack, port: int | None, data_dir: Path) -> str:
    """Start the demo on `port`; without one, on the usual port or any free one.

    Raises:
        PortTakenError: the port that was asked for cannot be used.
    """
    from bot.demo.director import Director  # noqa: PLC0415
    from bot.demo.stage import raise_curtain  # noqa: PLC0415

    try:
        return await raise_curtain(parts, Director(), data_dir, port=PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise PortTakenError(f"--port {port}: {os.strerror(error.errno or 0)}") from None
    return await raise_curtain(parts, Director(), data_dir, port=0)
