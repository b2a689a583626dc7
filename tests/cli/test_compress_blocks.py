"""Block-wise compressions by the command: they deliver, go on after kills, and their models are trained on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.blocks import line
from tests.cli.conftest import Run
from tests.cli.test_app import ENVIRONMENT
from tests.cli.training import table
from tests.compress.blockwise.small import pretended

from formwright.cli import compress_blocks
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.plan import Speeds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # processes that start on a busy machine
ROOT = Path(__file__).parents[2]
LONGER = ("--steps", 40, "--student-steps", 60, "--json")  # long enough to be met at work
FIXED = ("name", "digest", "params", "macs", "chosen", "distance", "steps")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.cli.compress_blocks.quick", lambda *_: pretended)


def fixed(facts: dict[str, Any]) -> list[tuple[Any, ...]]:
    """List of the delivered models what does not depend on the machine's mood."""
    return [tuple(model[name] for name in FIXED) for model in facts["models"]]


def test_models_of_several_sizes_are_delivered_and_trained_on(run: Run, tmp_path: Path) -> None:
    done = run(*line(tmp_path, "--json"))
    assert done.code == 0, done.err
    assert "blocks       2 blocks, 2 times 4 steps each" in done.err
    assert [model["name"] for model in done.data["models"]] == ["3k", "6k"]
    assert [model["params"] <= most for model, most in zip(done.data["models"], (3000, 6000), strict=True)] == [
        True
    ] * 2
    assert Path(done.data["report"]).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    again = run(*line(tmp_path, "--json"))
    assert fixed(again.data) == fixed(done.data)
    assert "steps each" not in again.err
    other = run(*line(tmp_path, "--seed", 1))
    assert (other.code, "seed 0" in other.err) == (2, True)
    tables = [path.read_bytes() for path in sorted((tmp_path / "out" / "blocks").glob("*/*"))]
    later = run(*line(tmp_path, "--json", sizes="5k,3k"))
    assert later.code == 0, later.err
    assert [model["name"] for model in later.data["models"]] == ["5k", "3k"]
    assert later.data["models"][1] == done.data["models"][0]
    assert [path.read_bytes() for path in sorted((tmp_path / "out" / "blocks").glob("*/*"))] == tables
    assert all(name in Path(done.data["report"]).read_text(encoding="utf-8") for name in ("3k", "5k", "6k"))
    trained = _on_task(run, tmp_path, Path(done.data["models"][0]["path"]), "student")
    teacher = _on_task(run, tmp_path, tmp_path / "bert", "teacher")
    taught = _on_task(run, tmp_path, Path(done.data["models"][0]["path"]), "taught", "--distil-from", teacher)
    assert trained.is_dir()
    assert taught.is_dir()


@pytest.mark.long
def test_a_model_that_is_slower_than_asked_for_is_told_of(run: Run, tmp_path: Path) -> None:
    done = run(*line(tmp_path, "--json"))
    facts = Folders(tmp_path / "out").facts("6k")
    plain = json.loads(facts.read_text(encoding="utf-8"))
    facts.write_text(json.dumps({**plain, "latency_ms": 9.5, "exceeded": ["latency_ms"]}), encoding="utf-8")
    again = run(*line(tmp_path))
    assert (done.code, again.code) == (0, 0)
    assert "6k takes 9.50 ms as a whole, more than was asked for" in " ".join(again.out.split())
    assert "3k takes" not in again.out


def _on_task(run: Run, folder: Path, model: Path, out: str, *options: object) -> Path:
    task = ("--task", table(folder), "--text", "words", "--label", "b", "--length", 12, "--steps", 2)
    done = run("train", model, *task, *options, "--out", folder / out, "--json")
    assert done.code == 0, done.err
    return Path(done.data["model"])


def has_checkpoint(stage: str) -> Callable[[Path], bool]:
    return lambda out: bool(list(Folders(out).checkpoints(stage).glob("step-*")))


STAGES: dict[str, Callable[[Path], bool]] = {
    "prepared": lambda out: Folders(out).bases.is_file(),
    "first block": has_checkpoint("block-0"),
    "second block": has_checkpoint("block-1"),
    "chosen": lambda out: Folders(out).choices.is_file(),
    "student": has_checkpoint("student-3k@60"),
    "delivered": lambda out: Folders(out).facts("3k").is_file(),
}


def start(folder: Path, *options: object) -> subprocess.Popen[str]:
    code = "from tests.cli import blocks; import runpy; runpy.run_module('tests.cli.blocks', run_name='__main__')"
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
        process.communicate()
        assert process.returncode == -signal.SIGKILL, stage  # it was killed, and had not come to its end
    done = run(*line(tmp_path, *LONGER))
    assert done.code == 0, done.err
    assert fixed(done.data) == fixed(whole.data)


@pytest.mark.long
def test_processes_come_to_the_same_and_ctrl_c_is_heard(run: Run, tmp_path: Path) -> None:
    whole = run(*line(tmp_path, *LONGER, out="whole"))
    process = start(tmp_path, *LONGER, "--workers", 2)
    while not list(Folders(tmp_path / "out").checkpoints("block-0").glob("step-*")) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130, told
    assert "everything is saved" in told
    done = run(*line(tmp_path, *LONGER, "--workers", 2))
    assert done.code == 0, done.err
    assert fixed(done.data) == fixed(whole.data)


@pytest.mark.long
def test_students_have_the_time_that_blocks_left(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine was ten times slower when the plan was made; a run that is called again keeps the revised plan."""
    slow, fast = Speeds(5.0, 1.0, 10.0, 1.0), Speeds(0.5, 0.1, 1.0, 0.1)
    found = iter((slow, fast))
    monkeypatch.setattr(compress_blocks, "measured_speeds", lambda _: next(found))
    words = line(tmp_path, "--hours", 0.02, "--json")
    done = run(*words)
    assert done.code == 0, done.err
    kept = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert kept["revised"]
    assert f"-> {kept['student_steps']:,}" in done.err
    assert run(*words).data == done.data
