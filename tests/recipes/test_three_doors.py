"""Every published method from the command line, from YAML and from Python: killed, run again, and the same models."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_app import ENVIRONMENT
from tests.cli.training import table
from tests.pipeline.block_runs import text
from tests.pipeline.compressions import bert

from formwright.core.errors import FormwrightError
from formwright.pipeline.run_folder import DONE, find
from formwright.recipes import RECIPES

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Case:
    """A method small enough to run in seconds: options of its recipe, and options of its stages by their paths."""

    options: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


def _searched(name: str, trials: int, steps: int, **settings: Any) -> Case:
    trained = {"search.training.steps": steps, "search.training.device": "cpu", "deliver.steps": steps}
    return Case({"task": {"name": name, "rows": 200}, "trials": trials}, trained | settings)


def _shared(*networks: str, **settings: Any) -> Case:
    quick = {"steps": 20, "training.batch": 16, "training.device": "cpu"}
    stages = {f"{name}.{option}": value for name in networks for option, value in quick.items()}
    searched = {"search.training.steps": 5, "search.training.device": "cpu"}
    return Case({"task": {"name": "digits", "rows": 200}, "trials": 5}, stages | searched | settings)


CASES = {
    "flexibert": _searched("mini-glue/sst2", 5, 10, **{"search.evaluator.steps": 5}),
    "autobert-zero": _searched("mini-glue/stsb", 5, 10, **{"search.evaluator.steps": 5}),
    "evolved-transformer": _searched("translation", 6, 9),
    "spos": _shared("super-network", **{"deliver.steps": 5}),
    "ofa": _shared("super-network", "super-network-2"),
    "eftnas": Case(
        {"task": {"name": "{table}", "text": ["words"], "label": "b"}, "model": "{bert}", "trials": 5},
        {
            "teacher.epochs": 2,
            "super-network.epochs": 2,
            "space.configurations": 3,
            "space.targets": ["macs=75%", "macs=50%"],
            "teacher.accept_weak": True,
            **{
                f"{stage}.training.{option}": value
                for stage in ("teacher", "super-network", "search")
                for option, value in {"batch": 16, "length": 16, "device": "cpu", "threads": 1}.items()
            },
        },
    ),
    # one cell of size and latency: what was measured then decides nothing, and two runs give the same
    "nas-bert": Case(
        {"model": "{bert}", "text": "{text}", "sizes": "3k,6k", "length": 12, "batch": 8, "device": "cpu"},
        {"blocks.steps": 4, "blocks.rounds": 2, "blocks.candidates": 60, "blocks.bins": 1, "blocks.least": 4}
        | {"choices.checked": 2, "students.steps": 4},
    ),
}


@dataclass(frozen=True)
class Door:
    """A way to run a method: the command that does it."""

    name: str

    def command(self, recipe: str, case: Case, folder: Path, out: Path) -> list[str]:
        files = {
            "{table}": str(folder / "table.csv"),
            "{bert}": str(folder / "bert"),
            "{text}": str(folder / "text.txt"),
        }
        filled = json.dumps(case.options)
        for mark, path in files.items():
            filled = filled.replace(mark, path)
        options = json.loads(filled)
        run = RECIPES.get(recipe).command
        if self.name == "yaml":
            path = folder / f"{recipe}.yaml"
            path.write_text(yaml.safe_dump({"recipe": recipe, **options, "set": case.settings}), encoding="utf-8")
            return ["-m", "formwright", "run", str(path), "--workers", "1", "--out", str(out)]
        task = options.pop("task", {})
        if self.name == "python":
            path = folder / f"{recipe}.py"
            given = {("task" if key == "name" else key): value for key, value in task.items()}
            given |= {**options, "recipe": recipe, "settings": case.settings, "out": str(out), "workers": 1}
            program = f"import formwright as fw\n\nif __name__ == '__main__':\n    fw.{run}(**{given!r})\n"
            path.write_text(program, encoding="utf-8")
            return [str(path)]
        flags = {"task": task.get("name"), "rows": task.get("rows"), "label": task.get("label")}
        flags |= {"text": ",".join(task.get("text", ())), **options}
        model = [flags.pop("model")] if "model" in flags else []
        said = [word for name, value in flags.items() if value for word in (f"--{name}", str(value))]
        said += [word for path, value in case.settings.items() for word in ("--set", f"{path}={json.dumps(value)}")]
        return ["-m", "formwright", run, *model, "--recipe", recipe, *said, "--workers", "1", "--out", str(out)]


def progress(out: Path) -> int:
    """Count the stages that are done and the trials that have an outcome."""
    told = 0
    with suppress(FormwrightError), find(str(out)).open() as opened:  # which may not be made yet
        told = sum(event.kind == "told" for event in opened.log.read())
    return told + len(list(out.glob(f"**/{DONE}")))


def delivered(out: Path) -> dict[str, Any]:
    """Give the digest of every file of weights, and the scores of every trial."""
    weights = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.glob("**/model.safetensors"))
    }
    scores = {}
    with suppress(FormwrightError), find(str(out)).open() as opened:
        for trial in opened.history().finished:
            metrics = trial.observation.metrics
            scores[trial.request.card.digest] = {name: one for name, one in metrics.items() if not name.endswith("_ms")}
    return {"weights": weights, "scores": scores}


def run(command: list[str]) -> None:
    done = subprocess.run([sys.executable, *command], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def killed(command: list[str], out: Path, enough: int) -> None:
    """Run a command and kill it, with all its workers, as soon as it has made so much progress."""
    with subprocess.Popen([sys.executable, *command], env=ENVIRONMENT, start_new_session=True) as process:
        while progress(out) < enough:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("recipe", CASES)
def test_killed_runs_deliver_the_same_models_through_every_door(recipe: str, tmp_path: Path) -> None:
    case = CASES[recipe]
    if "{bert}" in case.options.values():
        bert(tmp_path)
        text(tmp_path)
        table(tmp_path).rename(tmp_path / "table.csv")
    whole = tmp_path / "whole"
    run(Door("command line").command(recipe, case, tmp_path, whole))
    total, expected = progress(whole), delivered(whole)
    assert total > 2
    assert any("models" in name or "students" in name for name in expected["weights"]), expected["weights"]
    for quarter, door in enumerate(("command line", "yaml", "python"), 1):
        out = tmp_path / door.replace(" ", "-")
        command = Door(door).command(recipe, case, tmp_path, out)
        killed(command, out, max(1, quarter * total // 4))
        run(command)
        assert delivered(out) == expected, door
