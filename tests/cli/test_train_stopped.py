"""Real signals to real processes: what was learnt is not lost, and the losses are those of a run never stopped."""

import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import started
from tests.cli.training import card_file, on_table, table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # processes that start on a busy machine

STEPS = 120


def command(folder: Path, out: str, *options: object) -> list[str]:
    """Give the arguments of a training; `folder` gets the design and the table."""
    run = ("--steps", STEPS, "--judge-every", 10, "--patience", STEPS, "--json", "--out", folder / out)
    return [str(part) for part in ("train", card_file(folder), *on_table(table(folder)), *run, *options)]


def wait_for(process: subprocess.Popen[str], folder: Path, pattern: str) -> None:
    """Wait until a file is there, while the process runs."""
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.fixture
def whole(run: Run, tmp_path: Path) -> list[float]:
    """Give the losses of a run that nobody stopped."""
    losses: list[float] = run(*command(tmp_path, "whole")).data["losses"]
    assert len(losses) == STEPS
    return losses


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_stopped_run_is_saved_and_resumed(
    number: signal.Signals, whole: list[float], run: Run, tmp_path: Path
) -> None:
    with started(command(tmp_path, "out", "--save-every", 5)) as process:
        wait_for(process, tmp_path, "out/checkpoints/train/training/step-*")
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    stopped, line = err.splitlines()[-2:]
    step = int(stopped.split()[3].replace(",", ""))
    assert f"step {step} of {STEPS}" in stopped
    assert 5 <= step < STEPS
    assert (tmp_path / "out" / "checkpoints" / "train" / "training" / f"step-{step:09d}").is_dir()
    assert not (tmp_path / "out" / "model").exists()
    program, *arguments = shlex.split(line)
    assert program == "formwright"
    assert run(*arguments, "--json").data["losses"] == whole


def test_a_killed_run_goes_on_from_its_last_checkpoint(whole: list[float], run: Run, tmp_path: Path) -> None:
    arguments = command(tmp_path, "out", "--save-every", 5)
    with started(arguments) as process:
        wait_for(process, tmp_path, "out/checkpoints/train/training/step-*")
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "model").exists()
    assert run(*arguments).data["losses"] == whole


@pytest.mark.long
def test_pretraining_can_be_stopped_too(run: Run, tmp_path: Path) -> None:
    options = ("--pretrain", "self", "--pretrain-steps", STEPS, "--save-every", 20)
    with started(command(tmp_path, "out", *options)) as process:
        wait_for(process, tmp_path, "out/checkpoints/train/pretraining/step-*")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert f" of {STEPS} of pretraining; everything is saved" in err
    again, whole = (run(*command(tmp_path, out, *options)).data["losses"] for out in ("out", "whole"))
    assert again == whole


@pytest.mark.long
def test_a_second_signal_does_not_wait_for_the_step(tmp_path: Path) -> None:
    with started(command(tmp_path, "out", "--set", "training.accumulate=100000")) as process:  # a step of minutes
        wait_for(process, tmp_path, "out/run.json")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


@pytest.mark.long
def test_a_run_that_was_forced_goes_on_without_force(tmp_path: Path) -> None:
    with started(command(tmp_path, "out", "--force", "--save-every", 5)) as process:
        wait_for(process, tmp_path, "out/checkpoints/train/training/step-*")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "--force" not in err.splitlines()[-1]
