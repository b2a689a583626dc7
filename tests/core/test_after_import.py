"""Calling after somebody else's import, in fresh interpreters, for imports happen once."""

import os
import subprocess
import sys
from pathlib import Path

import formwright

SOURCE = Path(formwright.__file__).parents[1]
HOME = """
calls = []
def note():
    from watched.part import value
    calls.append(value)
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code next to a package `watched.part` and a module `home` that notes calls."""
    files = {"watched/__init__.py": "", "watched/part.py": "value = 7\n", "home.py": HOME}
    (folder / "watched").mkdir()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    start = "import sys\nfrom formwright.core.after_import import after_import\nfinders = list(sys.meta_path)\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(folder)])}
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_call_comes_after_the_import_and_once(tmp_path: Path) -> None:
    done = run(
        """
after_import("watched.part", "home:note")
assert "home" not in sys.modules and "watched" not in sys.modules
import watched
assert "home" not in sys.modules
import watched.part
import home, inspect, importlib
assert home.calls == [7], home.calls
assert inspect.getsource(watched.part) == "value = 7\\n"
assert watched.part.__loader__ is watched.part.__spec__.loader
assert type(watched.part.__loader__) is type(home.__loader__)
importlib.reload(watched.part)
assert home.calls == [7] and sys.meta_path == finders
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_the_call_comes_at_once_where_the_import_has_been(tmp_path: Path) -> None:
    done = run(
        'import watched.part\nafter_import("watched.part", "home:note")\n'
        "import home\nassert home.calls == [7] and sys.meta_path == finders",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_imported_is_a_warning(tmp_path: Path) -> None:
    done = run('after_import("watched.part", "nowhere:note")\nimport watched.part\nprint(watched.part.value)', tmp_path)
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert "RuntimeWarning: nowhere cannot be used here: No module named 'nowhere'" in done.stderr


def test_a_module_that_does_not_exist_is_still_missing(tmp_path: Path) -> None:
    done = run('after_import("watched.absent", "home:note")\nimport watched.absent', tmp_path)
    assert "ModuleNotFoundError: No module named 'watched.absent'" in done.stderr
    assert "after_import" not in done.stderr.split("ModuleNotFoundError")[1]
