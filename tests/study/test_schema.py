"""Which databases are opened, updated or refused."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from formwright.core.errors import IllegalInput
from formwright.study import database
from formwright.study.store import Store

SECOND = '''
"""Add a column, as a later version might."""
from alembic import op
import sqlalchemy as sa
revision, down_revision, branch_labels, depends_on = "0003", "0002", None, None
def upgrade():
    op.add_column("studies", sa.Column("owner", sa.Text))
'''


def run(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture
def later_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Give a function that turns the program into its own successor, with one more migration."""

    def turn() -> None:
        folder = tmp_path / "later" / "migrations"
        shutil.copytree(database.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "r0003_owner.py").write_text(SECOND)
        monkeypatch.setattr(database, "MIGRATIONS", folder)
        monkeypatch.setattr(database, "REVISIONS", (*database.REVISIONS, "0003"))

    return turn


def test_a_current_database_is_left_as_it_is_and_a_newer_one_refused(url: str, store: Store) -> None:
    store.create_study("one", {})
    for create in (False, True):
        with Store.open(url, create=create) as again:
            assert again.studies() == ["one"]
    run(url, f"UPDATE {database.VERSION_TABLE} SET version_num = '0099'")
    for create in (False, True):
        with pytest.raises(IllegalInput, match=r"written by a newer formwright \(revision 0099\): update"):
            Store.open(url, create=create)


def test_an_older_database_is_updated_only_when_asked_to(
    url: str, store: Store, later_version: Callable[[], None]
) -> None:
    store.create_study("one", {"seed": 1})
    store.study("one").append("note", "w1", {"kept": True})
    later_version()
    with pytest.raises(IllegalInput, match=r"written by an older formwright \(revision 0002\)"):
        Store.open(url)
    with Store.open(url, create=True) as updated:
        assert [event.data for event in updated.study("one").read()] == [{"kept": True}]
    run(url, "SELECT owner FROM studies")
    with Store.open(url) as current:
        assert current.studies() == ["one"]


def test_a_failed_update_leaves_the_old_database(url: str, store: Store, later_version: Callable[[], None]) -> None:
    later_version()
    broken = database.MIGRATIONS / "versions" / "r0003_owner.py"
    broken.write_text(SECOND + '    raise RuntimeError("power cut")\n')
    with pytest.raises(RuntimeError, match="power cut"):
        Store.open(url, create=True)
    broken.write_text(SECOND)  # fails if the column is there already
    with Store.open(url, create=True) as updated:
        assert updated.studies() == []


@pytest.mark.postgres
def test_an_empty_postgres_database_holds_no_studies(postgres: Any) -> None:
    with pytest.raises(IllegalInput, match="holds no studies yet"):
        Store.open(postgres.new_url())


def test_an_empty_file_holds_no_studies(tmp_path: Path) -> None:
    (tmp_path / "study.db").touch()
    with pytest.raises(IllegalInput, match="holds no studies yet"):
        Store.open(tmp_path)
    with Store.open(tmp_path, create=True) as store:
        assert store.studies() == []


@pytest.mark.parametrize("create", [False, True])
def test_the_file_of_another_program_is_refused(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "places.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(IllegalInput, match=r"belongs to another program \(it has the tables bookmarks\)"):
        Store.open(path, create=create)


@pytest.mark.postgres
def test_a_server_may_be_shared_but_not_the_names(postgres: Any) -> None:
    url = postgres.new_url()
    run(url, "CREATE TABLE bookmarks (url TEXT)")
    with Store.open(url, create=True) as store:
        assert store.studies() == []
    taken = postgres.new_url()
    run(taken, "CREATE TABLE studies (study_id INTEGER)")  # Optuna has a table of this name
    with pytest.raises(IllegalInput, match=r"belongs to another program \(it has the tables studies\)"):
        Store.open(taken, create=True)


def test_many_may_create_at_once(url: str) -> None:
    """All threads open a database that is not there yet; one makes the tables, nobody fails."""
    gate, failures = threading.Barrier(4), []

    def work() -> None:
        gate.wait()
        try:
            Store.open(url, create=True).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.postgres
def test_a_missing_database_of_a_server_is_said_at_once(postgres: Any) -> None:
    with pytest.raises(OSError, match='database "nowhere" does not exist'):
        Store.open(postgres.url("nowhere"), create=True)


def test_a_missing_server_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot reach postgresql"):
        Store.open(f"postgresql://me@/db?host={tmp_path}", create=True)


def test_the_tables_are_those_of_the_schema(store: Store) -> None:
    def difference(connection: object, _again: bool = False) -> list[object]:
        options = {"version_table": database.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)  # type: ignore[arg-type]
        return list(compare_metadata(context, database.metadata))

    assert store._database.read(difference) == []


def test_every_revision_is_listed_oldest_first() -> None:
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    listed = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(listed)) == database.REVISIONS
    assert scripts.get_heads() == [database.REVISIONS[-1]]


def test_opening_an_existing_study_does_not_import_alembic(tmp_path) -> None:
    Store.open(tmp_path, create=True).close()
    code = f"import sys; from formwright.study.store import Store; Store.open({str(tmp_path)!r}).close(); "
    code += "sys.exit('alembic' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=50).returncode == 0
