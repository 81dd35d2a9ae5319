"""Our memory, on SQLite and on a real PostgreSQL."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import postgres_server
from sqlalchemy import create_engine, text

from analyzers.model import Category, Confidence, Diagnosis, Evidence, Read
from analyzers.model import Skipped as NotRead
from bot.store.findings import from_text, to_text
from bot.store.store import Database
from bot.store.tables import SCHEMA_VERSION, SchemaError
from handlers.context import JobFinding, Store

HEAD = "a" * 40
DIAGNOSIS = Diagnosis(
    passed=False,
    category=Category.CUDA_OOM,
    retryable=False,
    confidence=Confidence.HIGH,
    summary="rank 5 ran out of memory\x00 – \N{FIRE}",
    culprit_ranks=(5,),
    evidence=Evidence("1/a/stderr.log", 12, ("one", "two")),
    read=Read(2, 300, (NotRead("x", "too large"),)),
)


def finding(*, job: str = "unit", run: int = 1, attempt: int = 1, pull: int = 42, head: str = HEAD) -> JobFinding:
    return JobFinding(
        pull=pull,
        head_sha=head,
        run_id=run,
        run_name="CI",
        run_url="https://github.example/1",
        attempt=attempt,
        job_id=9,
        job_name=job,
        job_url="",
        diagnosis=DIAGNOSIS,
        notes=("a note",),
    )


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 12, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with postgres_server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/mlm.db"
    shared: str = request.getfixturevalue("postgres_url")
    engine = create_engine(shared.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS mlm_schema, mlm_memory, mlm_finding"))
    engine.dispose()
    return shared


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    opened = await Database.open(url, clock=Clock())
    yield opened
    await opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    return database.for_repo(99)


async def test_once_keeps_the_first_of_many_at_once(database: Database, url: str) -> None:
    other = await Database.open(url, clock=Clock())  # another process would see the same
    stores = [base.for_repo(99) for base in (database, other)]
    got = await asyncio.gather(*(stores[number % 2].once("k", {"number": number}) for number in range(20)))
    assert len({json.dumps(value) for value in got}) == 1
    assert await database.for_repo(99).recall("k") == got[0]
    await other.close()


async def test_remember_recall_forget(store: Store) -> None:
    assert await store.recall("k") is None
    await store.remember("k", {"a": [1, None, "ä\x00"]})
    await store.remember("k", {"b": 2.5})
    assert await store.recall("k") == {"b": 2.5}
    await store.forget("k")
    await store.forget("k")
    assert await store.recall("k") is None
    assert await store.once("k", {"c": 3}) == {"c": 3}


async def test_a_repository_cannot_see_another(database: Database) -> None:
    ours, theirs = database.for_repo(1), database.for_repo(2)
    await ours.remember("k", {"ours": True})
    await ours.save_finding(finding())
    await theirs.forget("k")
    assert await theirs.recall("k") is None
    assert await theirs.findings(head_sha=HEAD) == ()
    assert await theirs.once("k", {"theirs": True}) == {"theirs": True}
    assert await ours.recall("k") == {"ours": True}


async def test_findings_come_back_exactly_oldest_first(store: Store) -> None:
    kept = [finding(job="b"), finding(job="a"), finding(job="a", attempt=2), finding(job="a", run=2**40)]
    for one in (*kept, finding(job="b", run=7, head="b" * 40)):
        await store.save_finding(one)
    assert list(await store.findings(head_sha=HEAD)) == kept


async def test_a_newer_finding_replaces_the_older_one_in_its_place(store: Store) -> None:
    for job in ("a", "b"):
        await store.save_finding(finding(job=job))
    newer = JobFinding(**{**vars(finding(job="a")), "job_id": 10, "notes": ()})
    await store.save_finding(newer)
    assert list(await store.findings(head_sha=HEAD)) == [newer, finding(job="b")]


async def test_memory_outlives_the_process(url: str) -> None:
    for expected in (None, {"a": 1}):
        opened = await Database.open(url, clock=Clock())
        assert await opened.for_repo(1).recall("k") == expected
        await opened.for_repo(1).remember("k", {"a": 1})
        await opened.ping()
        await opened.close()


async def test_several_may_start_at_once(url: str) -> None:
    opened = await asyncio.gather(*(Database.open(url, clock=Clock()) for _ in range(4)))
    versions = await opened[0].work(lambda connection: connection.execute(text("SELECT version FROM mlm_schema")).all())
    assert list(versions) == [(SCHEMA_VERSION,)]
    await asyncio.gather(*(one.close() for one in opened))


async def test_a_database_of_the_first_release_is_led_to_this_one(url: str) -> None:
    opened = await Database.open(url, clock=Clock())
    await opened.for_repo(1).save_finding(finding())
    for line in (
        "DROP INDEX mlm_finding_by_commit",
        "CREATE INDEX mlm_finding_by_head ON mlm_finding (repo_id, pull, head_sha)",
        "UPDATE mlm_schema SET version = 1",
    ):
        await opened.work(lambda connection, line=line: connection.execute(text(line)))  # type: ignore[misc]
    await opened.close()
    opened = await Database.open(url, clock=Clock())
    await opened.work(lambda connection: connection.execute(text("DROP INDEX mlm_finding_by_commit")))
    assert list(await opened.for_repo(1).findings(head_sha=HEAD)) == [finding()]
    await opened.close()


async def test_a_database_of_a_newer_release_is_left_alone(url: str) -> None:
    opened = await Database.open(url, clock=Clock())
    await opened.work(lambda connection: connection.execute(text("UPDATE mlm_schema SET version = 9")))
    await opened.close()
    with pytest.raises(SchemaError, match="schema 9"):
        await Database.open(url, clock=Clock())


async def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of database: mysql"):
        await Database.open("mysql://root@localhost/x", clock=Clock())


async def test_sqlite_lets_readers_and_the_writer_work_side_by_side(tmp_path: Path) -> None:
    opened = await Database.open(f"sqlite:///{tmp_path}/mlm.db", clock=Clock())
    mode = await opened.work(lambda connection: connection.execute(text("PRAGMA journal_mode")).scalar())
    wait_ms = await opened.work(lambda connection: connection.execute(text("PRAGMA busy_timeout")).scalar())
    assert (mode, wait_ms) == ("wal", 30_000)
    await opened.close()


@settings(max_examples=50, deadline=None)
@given(st.from_type(JobFinding))
def test_every_finding_survives_the_way_through_json(one: JobFinding) -> None:
    assert repr(from_text(to_text(one))) == repr(one)  # NaN is not equal to itself


async def test_changes_at_once_are_all_kept(store: Store) -> None:
    """Each change sees the one before it, however many come together."""

    def add(stored: dict[str, Any] | None) -> dict[str, Any]:
        return {"count": (stored or {"count": 0})["count"] + 1}

    await asyncio.gather(*(store.change("k", add) for _ in range(20)))
    assert await store.recall("k") == {"count": 20}


async def test_a_change_that_fails_changes_nothing(store: Store) -> None:
    await store.remember("k", {"a": 1})

    def fail(_: dict[str, Any] | None) -> dict[str, Any]:
        raise ValueError("no")

    for key in ("k", "new"):
        with pytest.raises(ValueError, match="no"):
            await store.change(key, fail)
    assert [await store.recall(key) for key in ("k", "new")] == [{"a": 1}, None]


async def test_what_is_old_is_forgotten_and_the_rest_is_kept(database: Database, url: str) -> None:
    """To the second, in both tables, and in every repository."""
    clock = Clock()
    later = await Database.open(url, clock=lambda: clock.time)
    for repo in (1, 2):
        for age_days in (121, 120, 119, 0):
            clock.time = datetime(2026, 12, 1, tzinfo=UTC) - timedelta(days=age_days, seconds=age_days == 120)
            await later.for_repo(repo).remember(f"k{age_days}", {"age": age_days})
            await later.for_repo(repo).save_finding(finding(run=age_days))
    clock.time = datetime(2026, 12, 1, tzinfo=UTC)
    assert await later.forget_old(clock.time) == 8
    for repo in (1, 2):
        kept = later.for_repo(repo)
        assert [await kept.recall(f"k{age}") is not None for age in (121, 120, 119, 0)] == [False, False, True, True]
        assert [one.run_id for one in await kept.findings(head_sha=HEAD)] == [119, 0]
    assert await later.forget_old(clock.time) == 0
    await later.close()
