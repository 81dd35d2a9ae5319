"""A database with a past: one finished piece of work, copied as often as needed."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import Engine, inspect, text

#: Where a finished delivery stands, and the column that tells it from others.
TABLES = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs")
KEY = "workflow_uuid"


def fill(database: Engine, copies: int) -> None:
    """Copy one finished delivery, with its steps, under ids of their own."""
    schema = "dbos" if database.dialect.name == "postgresql" else None
    with database.begin() as connection:
        where = f"{schema}." if schema else ""
        found = f"SELECT {KEY} FROM {where}workflow_status WHERE status = 'SUCCESS' LIMIT 1"
        one = connection.execute(text(found)).scalar_one()
        mark = uuid4().hex[:8]
        for table in TABLES:
            columns = [column["name"] for column in inspect(connection).get_columns(table, schema=schema)]
            values = [f"'{mark}-' || n" if column == KEY else column for column in columns]
            names = ", ".join(columns)
            statement = (
                f"WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < :copies) "
                f"INSERT INTO {where}{table} ({names}) SELECT {', '.join(values)} "
                f"FROM {where}{table}, counter WHERE {KEY} = :one"
            )
            connection.execute(text(statement), {"copies": copies, "one": one})
