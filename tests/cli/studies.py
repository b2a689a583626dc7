"""Small studies for the commands: a hundred rows, few steps, no more trials than needed."""

import io
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_app import COMMAND, ENVIRONMENT, formwright_process
from tests.cli.training import QUICK, table

from formwright.cli.app import main
from formwright.core.errors import FormwrightError
from formwright.pipeline.study_place import find
from formwright.study.store import Event

STEPS = 5
SPACE = "flexibert-nano"


def search_line(folder: Path, *options: object, trials: int = 3, final: int = STEPS, out: str = "study") -> list[str]:
    """Give the arguments of a quick search."""
    task = ("--task", table(folder), "--text", "words", "--label", "b", *QUICK)
    length = ("--trials", trials, "--steps", STEPS, "--final-steps", final)
    return [str(part) for part in ("search", SPACE, *task, *length, "--out", folder / out, *options)]


def facts(*arguments: object) -> dict[str, Any]:
    """Run a command that succeeds and prints JSON."""
    done = formwright_process(*(str(argument) for argument in arguments), "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def called(*arguments: object) -> Any:
    """Run a command in this process, and read the JSON object that it prints."""
    with redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as end:
        main([str(argument) for argument in (*arguments, "--json")])
    assert not end.value.code, out.getvalue()
    return json.loads(out.getvalue())


@contextmanager
def started(arguments: list[str], environment: Mapping[str, str] = ENVIRONMENT) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a session of its own, and end it whatever becomes of the test."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen([*COMMAND, *arguments], env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_for(process: subprocess.Popen[str], folder: Path, happened: Callable[[Event], bool]) -> None:
    """Wait until the log of a study has an event, while the process runs."""
    while True:
        assert process.poll() is None, process.communicate()
        with suppress(FormwrightError), find(str(folder)).open() as opened:  # which may not be made yet
            if any(map(happened, opened.log.read())):
                return
        time.sleep(0.05)


def digests(study: dict[str, Any]) -> list[str]:
    return [trial["digest"] for trial in study["trials"]]


def scores(study: dict[str, Any]) -> list[Any]:
    return [trial["metrics"] for trial in study["trials"]]
