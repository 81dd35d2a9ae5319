"""Our memory (`handlers.context.Store`): a few rows in SQLite or PostgreSQL, reached from threads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, delete, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url

from bot.store import tables
from bot.store.findings import from_text, to_text
from bot.store.watch import DatabaseFile
from handlers.context import JobFinding, Store

Result = TypeVar("Result")

#: No repository has this id: what is remembered under it concerns the App itself.
NO_REPO = 0
#: How long a writer waits for another one on SQLite, in milliseconds: longer than any transaction of ours.
BUSY_TIMEOUT_MS = 30_000
#: Longer than any run can be re-run (30 days) and than most pull requests live.
KEEP = timedelta(days=120)
#: `once` reads what it did not write; another process may forget the key in between, so it tries again, within reason.
ONCE_TRIES = 10


class Database:
    """One database for all repositories. Handlers get a `RepoStore` and cannot reach another repository with it."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime], file: DatabaseFile) -> None:
        self._engine = engine
        self._clock = clock
        self.file = file

    @classmethod
    async def open(cls, url: str, *, clock: Callable[[], datetime]) -> Database:
        """Connect and bring the tables up to date.

        Args:
            url: `sqlite:////absolute/path` or `postgresql://user:password@host/name`.
            clock: now, in UTC.

        Raises:
            ValueError: another kind of database.
            sqlalchemy.exc.SQLAlchemyError: it cannot be reached or written.
            tables.SchemaError: it was written by a newer release.
        """
        database = cls(_engine(url), clock, DatabaseFile(url))
        try:
            await database.work(tables.create)
            database.file.learn()
        except BaseException:
            await database.close()
            raise
        return database

    def for_repo(self, repo_id: int) -> Store:
        return RepoStore(self, repo_id)

    async def ping(self) -> None:
        """Return if the database takes a write, which a full disk does not show before.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: it does not.
            DatabaseReplacedError: it may, but not where the next process will look for it.
        """
        self.file.check()
        # Another value each time: SQLite writes nothing for a row that stays as it is.
        await self.for_repo(NO_REPO).remember("ping", {"at": self.now()})

    async def forget_old(self, now: datetime, *, keep: timedelta = KEEP) -> int:
        """Delete what was stored longer ago than `keep`; return how many rows. A pull request that old starts anew."""
        before = (now - keep).astimezone(UTC).isoformat(timespec="microseconds")

        def transaction(connection: Connection) -> int:
            old = [
                delete(tables.memory).where(tables.memory.c.stored_at < before),
                delete(tables.findings).where(tables.findings.c.found_at < before),
            ]
            return sum(connection.execute(statement).rowcount for statement in old)

        return await self.work(transaction)

    async def close(self) -> None:
        await asyncio.to_thread(self._engine.dispose)

    async def work(self, transaction: Callable[[Connection], Result]) -> Result:
        """Run one transaction in a thread: committed when it returns, rolled back when it raises."""

        def run() -> Result:
            with self._engine.begin() as connection:
                return transaction(connection)

        return await asyncio.to_thread(run)

    def insert(self, table: Any) -> Any:
        """Return an INSERT that knows ON CONFLICT in this database's dialect."""
        return postgresql.insert(table) if self._engine.dialect.name == "postgresql" else sqlite.insert(table)

    def now(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="microseconds")


class RepoStore:
    """The memory of one repository."""

    def __init__(self, database: Database, repo_id: int) -> None:
        self._database = database
        self._repo_id = repo_id

    async def once(self, key: str, value: dict[str, Any]) -> dict[str, Any]:
        """Store `value` unless there is one; return what is stored. Of two callers at once, both get the winner's."""
        insert = self._database.insert(tables.memory).values(**self._row(key, value)).on_conflict_do_nothing()

        def transaction(connection: Connection) -> dict[str, Any] | None:
            connection.execute(insert)
            return self._read(connection, key)

        for _ in range(ONCE_TRIES):
            stored = await self._database.work(transaction)
            if stored is not None:
                return stored
        raise RuntimeError(f"{key!r} is forgotten as fast as it is stored")

    async def recall(self, key: str) -> dict[str, Any] | None:
        return await self._database.work(lambda connection: self._read(connection, key))

    async def remember(self, key: str, value: dict[str, Any]) -> None:
        insert = self._database.insert(tables.memory).values(**self._row(key, value))
        upsert = insert.on_conflict_do_update(
            index_elements=["repo_id", "key"],
            set_={"value": insert.excluded.value, "stored_at": insert.excluded.stored_at},
        )
        await self._database.work(lambda connection: connection.execute(upsert))

    async def change(self, key: str, by: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """Replace what is stored by `by` of it, as one step; of two callers at once, one waits for the other."""
        # The row is made first: writing takes SQLite's one write lock, and PostgreSQL locks a row that exists.
        placeholder = self._database.insert(tables.memory).values({**self._row(key, {}), "value": "null"})
        where = (tables.memory.c.repo_id == self._repo_id, tables.memory.c.key == key)

        def transaction(connection: Connection) -> dict[str, Any]:
            connection.execute(placeholder.on_conflict_do_nothing())
            found = connection.execute(select(tables.memory.c.value).where(*where).with_for_update()).scalar_one()
            changed = by(json.loads(found))
            row = {"value": json.dumps(changed), "stored_at": self._database.now()}
            connection.execute(tables.memory.update().where(*where).values(row))
            return changed

        return await self._database.work(transaction)

    async def forget(self, key: str) -> None:
        where = (tables.memory.c.repo_id == self._repo_id, tables.memory.c.key == key)
        await self._database.work(lambda connection: connection.execute(delete(tables.memory).where(*where)))

    async def save_finding(self, finding: JobFinding) -> None:
        insert = self._database.insert(tables.findings).values(
            repo_id=self._repo_id,
            run_id=finding.run_id,
            attempt=finding.attempt,
            job_name=finding.job_name,
            pull=finding.pull,
            head_sha=finding.head_sha,
            found_at=self._database.now(),
            finding=await asyncio.to_thread(to_text, finding),
        )
        upsert = insert.on_conflict_do_update(
            index_elements=["repo_id", "run_id", "attempt", "job_name"],
            set_={name: insert.excluded[name] for name in ("pull", "head_sha", "finding")},
        )
        await self._database.work(lambda connection: connection.execute(upsert))

    async def findings(self, *, head_sha: str) -> Sequence[JobFinding]:
        found = tables.findings.c
        query = (
            select(found.finding)
            .where(found.repo_id == self._repo_id, found.head_sha == head_sha)
            .order_by(found.found_at, found.run_id, found.attempt, found.job_name)
        )

        def transaction(connection: Connection) -> Sequence[JobFinding]:
            # Here, in the thread: many findings take a while to be read.
            return tuple(from_text(row) for row in connection.execute(query).scalars())

        return await self._database.work(transaction)

    def _row(self, key: str, value: dict[str, Any]) -> dict[str, Any]:
        stored_at = self._database.now()
        return {"repo_id": self._repo_id, "key": key, "value": json.dumps(value), "stored_at": stored_at}

    def _read(self, connection: Connection, key: str) -> dict[str, Any] | None:
        where = (tables.memory.c.repo_id == self._repo_id, tables.memory.c.key == key)
        found = connection.execute(select(tables.memory.c.value).where(*where)).scalar()
        if found is None:
            return None
        value: dict[str, Any] = json.loads(found)
        return value


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite":
            engine = create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
            event.listen(engine, "connect", _set_up_sqlite)
            return engine
        case "postgresql":
            return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        case other:
            raise ValueError(f"unknown kind of database: {other}")


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")  # readers and the one writer do not wait for each other
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
    cursor.close()
