"""The migrations make exactly the tables that the code uses."""

import subprocess
import sys

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

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
