"""The two commands of the README repair what an earlier, interrupted run left behind."""

import shutil
import subprocess
from pathlib import Path

import pytest

from formwright.pipeline.run_folder import RUN

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
    assert f"-f studies/first/{RUN} " in plan  # a run that is there is resumed
