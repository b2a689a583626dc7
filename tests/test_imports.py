"""The front door is light: what it loads is read from `sys.modules` of a fresh interpreter, not timed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import formwright

SOURCE = Path(formwright.__file__).parents[1]
HEAVY = {"torch", "transformers", "numpy"}
HELP = """
import sys
from formwright.cli.app import main
sys.argv = ["formwright", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def loaded_by(code: str) -> set[str]:
    """Run code in a fresh interpreter and return the top-level modules it has loaded at the end."""
    report = "\nimport json, sys\nprint()\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + report],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_probe_sees_what_is_loaded() -> None:
    assert "numpy" in loaded_by("import formwright.core.rng")


def test_import_is_light() -> None:
    loaded = loaded_by("import formwright")
    assert "formwright" in loaded
    assert not loaded & HEAVY


def test_help_is_light() -> None:
    loaded = loaded_by(HELP)
    assert {"formwright", "typer"} <= loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", formwright.__all__)
def test_every_name_of_the_front_door_resolves(name: str) -> None:
    assert getattr(formwright, name) is not None
    assert name in dir(formwright)


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'cardd'"):
        _ = formwright.cardd


def test_the_version_is_the_packages_version(pytestconfig: pytest.Config) -> None:
    project = tomllib.loads((pytestconfig.rootpath / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert formwright.__version__ == project["version"]
