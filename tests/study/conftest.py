"""Databases for the tests of studies: a new SQLite file, or a new database on a PostgreSQL server of our own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from formwright.study.store import Log, Store


class PostgresServer:
    """A server that listens on a socket in a folder of its own, and forgets everything in the end."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.folder = folder
        self._binaries = binaries
        self._numbers = count()

    def initialise(self) -> None:
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        settings = f"-k {self.folder} -c listen_addresses= -c fsync=off -c max_connections=60"
        self._run("pg_ctl", "-D", "data", "-w", "-s", "-l", "log", "-o", settings, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-s", "-m", "immediate", "stop")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def new_url(self) -> str:
        """Make an empty schema and return a URL that leads there: a tenth of the time and the files of a database."""
        name = f"study_{next(self._numbers)}"
        with psycopg.connect(host=str(self.folder), user="postgres", autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{self.url()}&options=-csearch_path%3D{name}"

    def _run(self, program: str, *arguments: str) -> None:
        # PostgreSQL refuses to run as root; its package makes a user for it
        as_other = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        command = [*as_other, str(self._binaries / program), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=50)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    # not pytest's own folder: that is closed to other users, and too long a path for a socket
    folder = Path(tempfile.mkdtemp(prefix="formwright-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    server = PostgresServer(_binaries(), folder)
    server.initialise()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


def _binaries() -> Path:
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))  # where Debian and Ubuntu put it
    if not installed:
        pytest.fail("PostgreSQL is not installed; leave its tests out with: pytest -m 'not postgres'")
    return installed[-1].parent


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a database that does not exist yet or is empty: every test that uses it runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_url()


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[[], Store]]:
    """Give a function that opens the store of `url` once more, as another process would."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(Store.open(url, create=True))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def log(store: Store) -> Log:
    store.create_study("one", {"seed": 1})
    return store.study("one")
