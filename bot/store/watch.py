"""Whether the database takes what we write. Looked at all the time; a trouble is told once, and so is its end."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import structlog
from sqlalchemy import exc

log = structlog.get_logger()

#: Between two looks, in seconds: while all is well, and while it is not.
LOOK_EVERY_S = (5.0, 1.0)
#: So long an answer is waited for, in seconds.
LIMIT_S = 3.0
#: An error that comes so soon after the end of a trouble is still of it: a broken connection shows when it is used.
AFTERMATH_S = 60.0
#: What a database that is away, locked, full or no longer to be written answers; the first four as SQLAlchemy says it.
AWAY = (
    exc.OperationalError,
    exc.InterfaceError,
    exc.InternalError,
    exc.TimeoutError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    sqlite3.OperationalError,
)


#: Says whether the log has a line already about what an error shows (`Watch.told`).
Told = Callable[[BaseException], Awaitable[bool]]


async def not_told(_error: BaseException) -> bool:
    """Say no: there is nobody who watches."""
    return False


class DatabaseAwayError(Exception):
    """The database is known to be away; nothing was tried."""


class DatabaseReplacedError(Exception):
    """The file that this process has open is not the one that stands under its name: what we write is lost."""


class DatabaseFile:
    """The file of a SQLite database, known by its inode; there is nothing to know of a server."""

    def __init__(self, url: str) -> None:
        prefix = "sqlite:///"
        self._path = Path(url.removeprefix(prefix)) if url.startswith(prefix) else None
        self._known: tuple[int, int] | None = None

    def learn(self) -> None:
        """Take the file that is there now for the right one."""
        self._known = self._identity()

    def check(self) -> None:
        """Return if the file is still the one that was learned.

        Raises:
            DatabaseReplacedError: it is not; a process that goes on would write where nobody will read.
        """
        if self._identity() != self._known:
            raise DatabaseReplacedError("the database's file was deleted or replaced while the bot ran")

    def _identity(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


class Watch:
    """`trouble` says what is wrong now (None: nothing), in words without addresses; `replaced` ends the process.

    Args:
        ping: writes something small, or raises.
        show: told True or False for a figure.
    """

    def __init__(self, ping: Callable[[], Awaitable[None]], *, show: Callable[[bool], None]) -> None:
        self._ping = ping
        self._show = show
        self._asked: asyncio.Task[None] | None = None
        self._hinted: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._since_s = 0.0
        self._ended_s = float("-inf")
        self.trouble: str | None = None
        self.replaced = asyncio.Event()
        show(True)

    async def keep_looking(self) -> None:
        """Look for ever."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S[self.trouble is not None])

    async def look(self) -> str | None:
        """Return what is wrong now. However many ask, the database is asked once at a time."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._ping())
        asked = self._asked
        await asyncio.wait({asked}, timeout=LIMIT_S)
        if not asked.done():
            self._note(f"no answer within {LIMIT_S:.0f} s")
        elif (error := asked.exception()) is None:
            self._note(None)
        else:
            self._note(_reason(error))
            if isinstance(error, DatabaseReplacedError):
                self.replaced.set()
        return self.trouble

    def refuse(self) -> None:
        """Return unless the database is known to be away.

        Raises:
            DatabaseAwayError: it is; each try would keep a thread for as long as that lasts.
        """
        if self.trouble is not None:
            raise DatabaseAwayError(self.trouble)

    async def told(self, error: BaseException) -> bool:
        """Say whether an error only shows a trouble of the database that the log has a line about already."""
        if isinstance(error, DatabaseAwayError):
            return True
        return _shows_trouble(error) and (await self.look() is not None or self._over_s() < AFTERMATH_S)

    def is_news(self, record: logging.LogRecord) -> bool:
        """Keep a library, as the filter of its logger, from telling of the database's trouble many times a second."""
        if self._loop is None or not _shows_trouble(sys.exc_info()[1]):  # it logs while it handles the error
            return True
        said = record.getMessage()  # made now: its arguments may change
        self._loop.call_soon_threadsafe(lambda: self._follow(said))
        return False

    def _follow(self, said: str) -> None:
        if self._hinted is None or self._hinted.done():
            self._hinted = asyncio.ensure_future(self._look_because(said))

    async def _look_because(self, said: str) -> None:
        if await self.look() is None and self._over_s() > AFTERMATH_S:
            log.warning("database.unsteady", said=said)
            await asyncio.sleep(AFTERMATH_S)  # and the same is not told again so soon

    def _over_s(self) -> float:
        return asyncio.get_running_loop().time() - self._ended_s

    def _note(self, why: str | None) -> None:
        before, self.trouble = self.trouble, why
        now_s = asyncio.get_running_loop().time()
        if why is not None and before is None:
            self._since_s = now_s
            log.error("database.away", why=why)
        elif why is None and before is not None:
            self._ended_s = now_s
            log.warning("database.back", after_s=round(now_s - self._since_s, 1))
        self._show(why is None)


def _shows_trouble(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, (*AWAY, DatabaseReplacedError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reason(error: BaseException) -> str:
    """Say it without an address: SQLite's own sentences have none, a server's may."""
    if isinstance(error, DatabaseReplacedError):
        return str(error)
    cause = getattr(error, "orig", None) or error
    return str(cause) if isinstance(cause, sqlite3.Error) else type(cause).__name__
