"""The tables of our memory, all named mlm_*, and how they come to be: on SQLite and PostgreSQL alike."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, MetaData, Table, Text, insert, select, text

#: Raised by one with every change of the tables; `MIGRATIONS[n]` then leads from n to n + 1.
SCHEMA_VERSION = 2
MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("DROP INDEX mlm_finding_by_head", "CREATE INDEX mlm_finding_by_commit ON mlm_finding (repo_id, head_sha)"),
}
#: Any number will do, as long as every replica takes the same: it keeps two from creating the tables at once.
ADVISORY_LOCK = 7_355_608

metadata = MetaData()

schema = Table("mlm_schema", metadata, Column("version", Integer, nullable=False))

memory = Table(
    "mlm_memory",
    metadata,
    Column("repo_id", BigInteger, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),  # JSON
    Column("stored_at", Text, nullable=False),  # ISO 8601, UTC
)

findings = Table(
    "mlm_finding",
    metadata,
    Column("repo_id", BigInteger, primary_key=True),
    Column("run_id", BigInteger, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("job_name", Text, primary_key=True),
    Column("pull", Integer, nullable=False),
    Column("head_sha", Text, nullable=False),
    Column("found_at", Text, nullable=False),  # ISO 8601, UTC, of the first time: the order of a report is stable
    Column("finding", Text, nullable=False),  # JSON
    Index("mlm_finding_by_commit", "repo_id", "head_sha"),
)


class SchemaError(Exception):
    """The database was written by a newer release than this one."""


def create(connection: Connection) -> None:
    """Create what is missing and lead an older schema to ours; to be called within a transaction.

    Raises:
        SchemaError: the database is newer than this release.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    else:
        connection.execute(text("BEGIN IMMEDIATE"))  # two processes that start at once: one looks and creates first
    metadata.create_all(connection)
    found = connection.execute(select(schema.c.version)).scalar()
    if found is None:
        connection.execute(insert(schema).values(version=SCHEMA_VERSION))
        return
    if found > SCHEMA_VERSION:
        raise SchemaError(f"the database has schema {found}, this release knows {SCHEMA_VERSION}: start the newer one")
    for version in range(found, SCHEMA_VERSION):
        for statement in MIGRATIONS[version]:
            connection.execute(text(statement))
    connection.execute(schema.update().values(version=SCHEMA_VERSION))
