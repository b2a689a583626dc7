"""Kills in every stage: the run that goes on delivers what one never interrupted delivers."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.cli import studies
from tests.cli.compressing import everything, line, models, setting, trials
from tests.cli.conftest import Run
from tests.cli.test_app import ENVIRONMENT
from tests.pipeline.compressions import bert

from formwright.core.errors import FormwrightError
from formwright.pipeline.run_folder import DATABASE
from formwright.pipeline.study_place import find

pytestmark = [
    *(pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("one_process")),
    pytest.mark.timeout(400),  # processes that start on a busy machine
]
LONG = (
    *setting(teacher__epochs=40, super_network__epochs=30, deliver__epochs=20),
    *("--trials", 14, "--save-every", 10, "--json"),
)
Reached = Callable[[Path], bool]


def started(folder: Path, out: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start the command where no other runtime than torch is installed, and end it whatever becomes of the test."""
    shadow = folder / "shadow"
    shadow.mkdir(exist_ok=True)
    (shadow / "onnx.py").write_text("raise ModuleNotFoundError('not here', name='onnx')\n", encoding="utf-8")
    there = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((str(shadow), ENVIRONMENT["PYTHONPATH"]))}
    return studies.started(line(folder, *LONG, out=out), there)


def wait_until(process: subprocess.Popen[str], out: Path, stage: str) -> None:
    while not STAGES[stage](out):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def checkpoint_of(stage: str) -> Reached:
    return lambda out: bool(list((out / "checkpoints" / stage).glob("step-*")))


def searched(out: Path) -> bool:
    if not (out / DATABASE).is_file():
        return False
    try:
        with find(str(out)).open() as opened:
            return any(event.kind == "told" for event in opened.log.read())
    except FormwrightError:  # it is being made
        return False


STAGES: dict[str, Reached] = {
    "planning": lambda out: (out / "run.json").is_file(),
    "teacher": checkpoint_of("teacher"),
    "scores": lambda out: (out / "teacher" / "done.json").is_file(),
    "space": lambda out: (out / "space" / "space.json").is_file(),
    "super-network": checkpoint_of("super-network"),
    "search": searched,
    "delivery": lambda out: bool(list(out.glob("final/macs-*"))),
    "delivered": lambda out: bool(list(out.glob("models/macs-*"))),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a model, rows, and a compression `whole` that nobody disturbed."""
    found = tmp_path_factory.mktemp("compressed")
    bert(found)
    with started(found, "whole") as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(json.loads(out)["models"]) > 1
    (found / "whole.json").write_text(out, encoding="utf-8")
    return found


def check(facts: dict[str, Any], folder: Path, out: str) -> None:
    """Compare with the compression that nobody disturbed."""
    assert models(facts) == models(json.loads((folder / "whole.json").read_text(encoding="utf-8")))
    assert trials(folder / out) == trials(folder / "whole")
    assert weights(folder / out) == weights(folder / "whole")


def weights(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in everything(out).items() if name.endswith("model.safetensors")}


def kill_at(stage: str, folder: Path, out: str) -> None:
    with started(folder, out) as process:
        wait_until(process, folder / out, stage)
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_compression_delivers_the_same(stage: str, run: Run, folder: Path) -> None:
    kill_at(stage, folder, stage)
    check(run(*line(folder, *LONG, out=stage)).data, folder, stage)


def test_a_compression_that_is_killed_over_and_over_delivers_the_same(run: Run, folder: Path) -> None:
    for stage in ("teacher", "super-network", "delivery"):
        kill_at(stage, folder, "often")
    check(run(*line(folder, *LONG, out="often")).data, folder, "often")


@pytest.mark.parametrize("stage", ["teacher", "super-network"])
def test_a_stopped_compression_is_saved_and_names_the_line_that_goes_on(stage: str, run: Run, folder: Path) -> None:
    name = f"stopped-{stage}"
    with started(folder, name) as process:
        wait_until(process, folder / name, stage)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    stopped, again = err.splitlines()[-2:]
    assert stopped.startswith("stopped at step ")
    assert "everything is saved" in stopped
    program, *words = shlex.split(again)
    assert (program, words) == ("formwright", ["resume", str(folder / name)])
    check(run(*words, "--json").data, folder, name)
