"""Block-wise compressions by the command: they deliver, resume after kills, and their models are trained further."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.blocks import line
from tests.cli.conftest import Run
from tests.cli.test_app import ENVIRONMENT
from tests.cli.training import table
from tests.pipeline.block_runs import pretended_times

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # processes that start on a busy machine
ROOT = Path(__file__).parents[2]
LONGER = ("--set", "blocks.steps=40", "--set", "students.steps=60", "--json")  # long enough to be met at work
FIXED = ("name", "digest", "params", "macs", "chosen", "distance", "steps")


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with pretended_times():
        yield


def fixed(facts: dict[str, Any]) -> list[tuple[Any, ...]]:
    """List of the delivered models what does not depend on the machine's mood."""
    return [tuple(model[name] for name in FIXED) for model in facts["models"]]


def test_models_of_several_sizes_are_delivered_shown_and_trained_further(run: Run, tmp_path: Path) -> None:
    done = run(*line(tmp_path, "--json")).printed()
    assert "2 blocks, 2 times 4 steps each" in done.err
    assert [model["name"] for model in done.data["models"]] == ["3k", "6k"]
    assert all(model["params"] <= most for model, most in zip(done.data["models"], (3000, 6000), strict=True))
    again = run(*line(tmp_path, "--json"))
    assert fixed(again.data) == fixed(done.data)
    assert "steps each" not in again.err
    run(*line(tmp_path, "--seed", 1)).refused("source.seed")
    later = run(*line(tmp_path, "--json", sizes="5k,3k"))
    assert [model["name"] for model in later.data["models"]] == ["5k", "3k"]
    assert later.data["models"][1] == done.data["models"][0]
    page = Path(done.data["report"])
    assert all(name in page.read_text(encoding="utf-8") for name in ("3k", "5k", "6k"))
    resumed = run("resume", tmp_path / "out", "--json")
    assert resumed.data == later.data
    run("show", tmp_path / "out").printed("6 of 6 stages", "5k")
    page.unlink()
    assert run("report", tmp_path / "out").code == 0
    assert page.is_file()
    student = Path(done.data["models"][0]["path"])
    teacher = _on_task(run, tmp_path, tmp_path / "bert", "teacher")
    _on_task(run, tmp_path, student, "taught", "--distil-from", teacher)


def _on_task(run: Run, folder: Path, model: Path, out: str, *options: object) -> Path:
    task = ("--task", table(folder), "--text", "words", "--label", "b", "--length", 12, "--steps", 2)
    done = run("train", model, *task, *options, "--out", folder / out, "--json").printed()
    return Path(done.data["model"])


def has_checkpoint(unit: str) -> Callable[[Path], bool]:
    return lambda out: bool(list((out / "checkpoints").glob(f"*/{unit}/step-*")))


STAGES: dict[str, Callable[[Path], bool]] = {
    "fitted": lambda out: (out / "bases" / "done.json").is_file(),
    "first block": has_checkpoint("block-0"),
    "second block": has_checkpoint("block-1"),
    "chosen": lambda out: (out / "choices" / "done.json").is_file(),
    "student": has_checkpoint("3k@60"),
    "delivered": lambda out: (out / "students" / "3k.json").is_file(),
}


def start(folder: Path, *options: object) -> subprocess.Popen[str]:
    code = "import runpy; runpy.run_module('tests.cli.blocks', run_name='__main__')"
    path = os.pathsep.join((str(ROOT), ENVIRONMENT["PYTHONPATH"]))
    arguments = [sys.executable, "-W", "ignore", "-c", code, *line(folder, *options)]
    return subprocess.Popen(arguments, env={**ENVIRONMENT, "PYTHONPATH": path}, text=True, stdout=-1, stderr=-1)


@pytest.mark.long
def test_a_command_that_is_killed_again_and_again_delivers_the_same(run: Run, tmp_path: Path) -> None:
    whole = run(*line(tmp_path, *LONGER, out="whole"))
    out = tmp_path / "out"
    for stage, reached in STAGES.items():
        process = start(tmp_path, *LONGER)
        while not reached(out) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        _, told = process.communicate()
        assert process.returncode == -signal.SIGKILL, (stage, told)  # it was killed, and had not come to its end
        run("show", out).printed(f"formwright resume {out}")
    done = run(*line(tmp_path, *LONGER)).printed()
    assert fixed(done.data) == fixed(whole.data)


@pytest.mark.long
def test_processes_come_to_the_same_and_ctrl_c_is_heard(run: Run, tmp_path: Path) -> None:
    whole = run(*line(tmp_path, *LONGER, out="whole"))
    process = start(tmp_path, *LONGER, "--workers", 2)
    while not has_checkpoint("block-0")(tmp_path / "out") and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130, told
    assert "everything is saved" in told
    done = run(*line(tmp_path, *LONGER, "--workers", 2)).printed()
    assert fixed(done.data) == fixed(whole.data)
