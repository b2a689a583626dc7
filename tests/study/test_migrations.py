"""The migrations make exactly the tables that the code uses."""

import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from formwright.core.errors import IllegalInput
from formwright.study import schema
from formwright.study.store import Store


def test_the_tables_are_those_of_the_schema(store: Store) -> None:
    def difference(connection: object, _again: bool = False) -> list[object]:
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)  # type: ignore[arg-type]
        return list(compare_metadata(context, schema.metadata))

    assert store._database.read(difference) == []


def test_every_revision_is_listed_oldest_first() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    listed = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(listed)) == schema.REVISIONS
    assert scripts.get_heads() == [schema.REVISIONS[-1]]


def test_opening_an_existing_study_does_not_import_alembic(tmp_path) -> None:
    Store.open(tmp_path, create=True).close()
    code = f"import sys; from formwright.study.store import Store; Store.open({str(tmp_path)!r}).close(); "
    code += "sys.exit('alembic' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=50).returncode == 0


def test_events_of_the_first_revision_get_their_hashes(url: str) -> None:
    """Go back to the first layout with events in it, and open the database as this version does."""
    with Store.open(url, create=True) as store:
        store.create_study("one", {"seed": 1})
        log = store.study("one")
        log.append("started", "me", {"begins": True})
        log.ask(0, "me", 60.0, {"x": 0.1})
        before = log.read()

        def back(connection: Connection, _again: bool) -> None:
            connection.execute(text("ALTER TABLE events DROP COLUMN hash"))
            connection.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0001'"))

        store._database.write(0, back)
    with pytest.raises(IllegalInput, match="formwright resume"):
        Store.open(url)
    with Store.open(url, update=True) as store:
        assert store.study("one").read() == before
        with pytest.raises(DBAPIError, match="append-only"):
            store._database.write(0, lambda connection, _: connection.execute(text("UPDATE events SET kind = 'told'")))
