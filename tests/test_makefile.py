"""The two commands of the README repair what an earlier, interrupted run left behind, and no test is forgotten."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("found", "made_again"), [([], True), (["python"], True), (["python", "pip"], False)])
def test_an_environment_that_was_cut_short_is_made_again(tmp_path: Path, found: list[str], made_again: bool) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in found:
        (tmp_path / ".venv" / "bin" / name).touch()
    plan = subprocess.run(["make", "-n", "run"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert ("-m venv .venv" in plan) is made_again
    assert "pip install" in plan


def test_all_tests_that_run_alone_are_in_the_folders_where_they_are_looked_for() -> None:
    served = re.search(r"^SERVED := (.+?) #", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert served is not None
    marked = re.compile(r"pytest\.mark\.(ray|alone|postgres|browser)\b")
    found = [path for path in (ROOT / "tests").rglob("*.py") if marked.search(path.read_text(encoding="utf-8"))]
    assert found
    folders = [ROOT / name for name in served[1].split()]
    assert [path for path in found if not any(path.is_relative_to(folder) for folder in folders)] == []
