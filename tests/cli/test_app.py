import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.cli.conftest import Run

import formwright
from formwright.cli import options as topics_of
from formwright.cli.app import app, main
from formwright.cli.options import with_value
from formwright.cli.program import call, command_line
from formwright.core.errors import Fault, FormwrightError, IllegalDesign, IllegalInput, UnknownName

SOURCE = Path(formwright.__file__).parents[1]
COMMAND = [sys.executable, "-m", "formwright.cli.app"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def formwright_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False)


def failing(error: BaseException) -> Any:
    """Give a stand-in for the function that finds a name, which fails."""

    def find(_: str) -> None:
        raise error

    return find


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (("bert-tiny", "--json"), 0, '.*"params": 4385920.*', ""),
        (("/absent.json",), 2, "", r"formwright: cannot read /absent\.json: No such file or directory\n"),
        (("bert-tiny", "--length", "0"), 2, "", "(?!.*Traceback).*--length.*"),
    ],
)
def test_a_process_of_its_own(arguments: tuple[str, ...], code: int, out: str, err: str) -> None:
    done = formwright_process("show", *arguments)
    assert done.returncode == code
    assert re.fullmatch(out, done.stdout, re.DOTALL)
    assert re.fullmatch(err, done.stderr, re.DOTALL), done.stderr


def test_a_reader_that_has_seen_enough_hears_no_complaint() -> None:
    with subprocess.Popen(
        [*COMMAND, "list", "cards", "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (1, b"")


@pytest.mark.parametrize(
    ("encoding", "arguments"), [("ascii", ["bert-tiny"]), ("cp1252", ["evolved-transformer-nano", "--sample", "1"])]
)
def test_a_terminal_that_lacks_letters_is_no_error(encoding: str, arguments: list[str]) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*COMMAND, "show", *arguments], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"graph digest" in done.stdout


def test_version(run: Run) -> None:
    assert run("--version").out == f"formwright {formwright.__version__}\n"


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_shows_the_commands_in_the_order_of_use(run: Run, option: str) -> None:
    done = run(option).printed()
    assert done.out.index(" list ") < done.out.index(" show ")


@pytest.mark.parametrize("command", ["list", "show"])
def test_every_command_has_help(run: Run, command: str) -> None:
    run(command, "-h").printed("--json")


FEW = 6  # options that need no topics


@pytest.mark.parametrize("name", sorted(command.name or "" for command in app.registered_commands))
def test_help_groups_the_options_of_a_command_by_topic(name: str) -> None:
    topics = {value for key, value in vars(topics_of).items() if key.isupper()}
    options = [one for one in typer.main.get_command(app).commands[name].params if one.param_type_name == "option"]  # type: ignore[attr-defined]
    if len(options) > FEW:
        assert {option.name: option.rich_help_panel for option in options if option.rich_help_panel not in topics} == {}


def test_without_a_command_help_is_shown(run: Run) -> None:
    done = run()
    assert (done.code, " list " in done.out + done.err) == (2, True)


@pytest.mark.parametrize("arguments", [["shw"], ["show"], ["list"], ["show", "hat", "--sampel", "1"], ["--wrong"]])
def test_wrong_usage_is_a_users_error(run: Run, arguments: list[str]) -> None:
    run(*arguments).refused("Usage:")


UNKNOWN = UnknownName("card", "x", ["y"])
FAULTS = IllegalDesign([Fault("here", "is wrong"), Fault("there", "too")])
DISK_FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (IllegalInput("the message"), 2, "formwright: the message\n"),
        (UNKNOWN, 2, f"formwright: {UNKNOWN}\n"),
        (FAULTS, 2, f"formwright: {FAULTS}\n"),
        (FormwrightError("the root of all"), 2, "formwright: the root of all\n"),
        (DISK_FULL, 2, "formwright: cannot write the output: No space left on device\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_one_message(
    error: BaseException, code: int, message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formwright.cli.show.find", failing(error))
    done = run("show", "anything")
    assert (done.code, done.out, done.err) == (code, "", message)


@pytest.mark.parametrize("error", [ZeroDivisionError(), PermissionError(errno.EACCES, "Permission denied")])
def test_our_own_mistakes_are_not_hidden(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.cli.show.find", failing(error))
    with pytest.raises(type(error)):
        main(["show", "anything"])


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([], []),
        (["--ray"], ["--ray", "local"]),
        (["a", "--ray", "--workers", "1"], ["a", "--ray", "local", "--workers", "1"]),
        (["--ray", "ray://host:10001", "a"], ["--ray", "ray://host:10001", "a"]),
        (["--ray=host:1", "a"], ["--ray=host:1", "a"]),
        (["--workers", "1"], ["--workers", "1"]),
    ],
)
def test_without_an_address_ray_runs_here(given: list[str], read: list[str]) -> None:
    assert with_value(given) == read


@pytest.mark.parametrize("command", ["search", "resume"])
def test_a_command_takes_the_bare_option(command: str, run: Run) -> None:
    assert "requires an argument" not in run(command, "--ray").refused("Missing").err


def installed(folder: Path) -> Path:
    program = folder / "formwright"
    program.touch(mode=0o755)
    return program


@pytest.mark.parametrize("known", [True, False])
def test_a_program_outside_the_path_is_called_by_its_path(
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
