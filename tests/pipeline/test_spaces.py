import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.pipeline.spaces import find_space
from formwright.space.zoo import load_space

MINE = """
from dataclasses import dataclass
from formwright.testing.spaces import tiny
MINE = tiny()
NUMBER = 7
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_a_space_is_found_by_name() -> None:
    assert find_space("flexibert-nano") is load_space("flexibert-nano")


def test_a_space_of_the_users_own_is_found_in_its_file(mine: Path) -> None:
    space = find_space(f"{mine}:MINE")
    assert space.count() == 12
    design = space.sample(derive(0))
    assert pickle.loads(pickle.dumps(space)).card(design) == space.card(design)


@pytest.mark.parametrize("name", ["MINNE", "NUMBER", "dataclass"])
def test_a_file_without_that_space_is_refused(name: str, mine: Path) -> None:
    with pytest.raises(IllegalInput, match=f"has no search space called '{name}'"):
        find_space(f"{mine}:{name}")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="there is no file"):
        find_space(f"{tmp_path / 'absent.py'}:MINE")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("import absent_module_of_mine", "ModuleNotFoundError: No module named"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused(content: str, told: str, mine: Path) -> None:
    mine.write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=rf"cannot run .*mine\.py: {told}"):
        find_space(f"{mine}:MINE")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownName, match="flexibert-nano"):
        find_space("flexibert-nanno")


def module_name(mine: Path, seed: str) -> str:
    """Name the module of a space in a process whose hashes begin with a seed."""
    load = f"import sys; from formwright.pipeline.spaces import find_space; find_space({f'{mine}:MINE'!r})"
    show = "print(*(name for name in sys.modules if name.startswith('formwright_user_')))"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.check_output([sys.executable, "-c", f"{load}; {show}"], env=environment, text=True).strip()


@pytest.mark.slow
def test_a_module_has_the_same_name_in_every_process(mine: Path) -> None:
    assert module_name(mine, "1") == module_name(mine, "2") != ""
