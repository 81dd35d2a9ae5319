"""Who is alive: a lock per executor id, held as long as its process lives.

flock() on a file beside a SQLite database, a session's advisory lock on PostgreSQL: both end with the process,
however it ends, and neither needs a clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from pathlib import Path
from typing import Protocol, Self

import psycopg

#: Keeps our advisory locks apart from those of others in the same database.
LOCK_SPACE = 4711


class AliveLock(Protocol):
    """The lock of one executor id."""

    async def take(self) -> bool:
        """Take the lock, or make sure that we still have it; False if somebody else has it."""
        ...

    async def release(self) -> None: ...


class FileLock:
    """For SQLite: all processes are on one host and see the same folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    async def take(self) -> bool:
        if self._file is None:
            self._file = await asyncio.to_thread(self._try)
        return self._file is not None

    def _try(self) -> int | None:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        return file

    async def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class ServerLock:
    """For PostgreSQL: a lock that belongs to a connection; when that breaks, the lock is gone and is taken again."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: psycopg.AsyncConnection | None = None
        self._ours = False

    async def take(self) -> bool:
        try:
            return await self._take()
        except psycopg.OperationalError:
            # Broken since the last round: once more on a new connection, whose failure is the caller's to see.
            await self.release()
            return await self._take()

    async def _take(self) -> bool:
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        if self._ours:
            await self._connection.execute("SELECT 1")
            return True
        statement = "SELECT pg_try_advisory_lock(hashtextextended(%s, %s))"
        row = await (await self._connection.execute(statement, (self._name, LOCK_SPACE))).fetchone()
        self._ours = bool(row and row[0])
        return self._ours

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        ours, self._ours = self._ours, False
        if connection is None:
            return
        try:
            with contextlib.suppress(psycopg.Error):  # a broken connection has lost the lock already
                if ours:
                    # Closing alone frees it only when the server gets round to noticing: the next one would be refused.
                    await connection.execute("SELECT pg_advisory_unlock_all()")
        finally:
            await connection.close()


def lock_for(database_url: str, executor_id: str) -> AliveLock:
    """Return the lock of an executor id of this database, not taken yet."""
    if database_url.startswith("sqlite:///"):
        return FileLock(Path(f"{database_url.removeprefix('sqlite:///')}.{executor_id}.alive"))
    return ServerLock(database_url, executor_id)


class Held:
    """`async with Held(lock) as ours`: holds the lock for a while if it is free."""

    def __init__(self, lock: AliveLock) -> None:
        self._lock = lock
        self.ours = False

    async def __aenter__(self) -> Self:
        self.ours = await self._lock.take()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._lock.release()
