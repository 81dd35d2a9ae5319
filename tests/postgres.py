"""A PostgreSQL server of the test's own, where its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of an empty database; skips the test, saying so, where `initdb` and `pg_ctl` are not installed."""
    initdb, pg_ctl = shutil.which("initdb"), shutil.which("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed here: the engine is tested on SQLite only")
    # Not below tmp_path: the server refuses to be root, and others may not enter that folder.
    folder = Path(tempfile.mkdtemp(prefix="mlm-pg-", dir="/tmp"))
    user = _unprivileged(folder)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, cwd=folder)

    try:
        run(initdb, "-D", str(folder / "db"), "-A", "trust", "-U", "mlm", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        run(pg_ctl, "-D", str(folder / "db"), "-w", "-o", options, "-l", str(folder / "log"), "start")
        with psycopg.connect(host=str(folder), user="mlm", dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE mlm")
        yield f"postgresql://mlm@/mlm?host={folder}"
    finally:
        with suppress(subprocess.CalledProcessError):  # it never started
            run(pg_ctl, "-D", str(folder / "db"), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged(folder: Path) -> int | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name).pw_uid
            os.chown(folder, user, -1)
            return user
    pytest.skip("PostgreSQL refuses to run as root, and there is no other user here")
