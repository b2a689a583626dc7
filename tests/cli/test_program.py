"""The program is called again as it was called, and passwords are not kept."""

import shlex
from pathlib import Path

import pytest

from formwright.cli.program import call, command_line


def installed(folder: Path) -> Path:
    program = folder / "formwright"
    program.touch(mode=0o755)
    return program


@pytest.mark.parametrize("known", [True, False])
def test_a_program_that_the_shell_does_not_find_is_called_by_its_path(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = installed(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program), "search"])
    monkeypatch.setenv("PATH", str(tmp_path) if known else "")
    assert shlex.split(call("show", "a b")) == ["formwright" if known else str(program), "show", "a b"]


def test_another_program_of_the_same_name_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    installed(tmp_path / "other")
    program = installed(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert call() == str(program)


def test_what_only_uses_the_program_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [__file__])
    assert call("list") == "formwright list"


def test_a_noted_line_can_be_repeated() -> None:
    line = command_line(["search", "my space.py:S", "--storage", "postgresql://me:secret@host/db"])
    assert shlex.split(line) == ["formwright", "search", "my space.py:S", "--storage", "postgresql://me:***@host/db"]
