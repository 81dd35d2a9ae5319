"""Where the engine keeps its rows and how eager it is, and what dbos is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Constant for ever: dbos never touches rows of another version again, so a new one would strand work at every deploy.
APPLICATION_VERSION = "1"
#: dbos makes its pool the loop's default executor and grows it without a bound unless told otherwise.
THREADS = 16
SQLITE_POOL = 2


@dataclass(frozen=True)
class EngineSettings:
    """Where the engine keeps its rows, and how eager it is. Times in seconds."""

    database_url: str
    executor_id: str
    polling_s: float = 0.1
    rescue_every_s: float = 10.0
    orphan_after_s: float = 20.0
    grace_s: float = 8.0


def dbos_config(settings: EngineSettings) -> dict[str, Any]:
    """Return the settings of dbos itself, which is imported when this is called and not before."""
    from dbos import DBOSPortableJSONSerializer  # noqa: PLC0415

    config: dict[str, Any] = {
        "name": "mlm-bot",
        "system_database_url": settings.database_url,
        "executor_id": settings.executor_id,
        "application_version": APPLICATION_VERSION,
        "max_executor_threads": THREADS,
        # The default is pickle: whoever could write to the database would run code in the bot.
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
    }
    if settings.database_url.startswith("sqlite"):
        config["sys_db_pool_size"] = SQLITE_POOL
    return config
