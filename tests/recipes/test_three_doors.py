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

import numpy as np
import pytest
import yaml
from tests.cli.test_app import ENVIRONMENT
from tests.cli.training import table
from tests.pipeline.block_runs import text
from tests.pipeline.compressions import bert
from tests.tasks.test_recordings import write_wav

from formwright.core.errors import FormwrightError
from formwright.core.rng import derive
from formwright.cost import COSTS
from formwright.pipeline.run_folder import DONE
from formwright.pipeline.study_place import find
from formwright.recipes import RECIPES
from formwright.space.zoo import load_space

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Case:
    """A method small enough to run in seconds: options of its recipe, and options of its stages by their paths."""

    options: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


def _searched(name: str, trials: int, steps: int, **settings: Any) -> Case:
    trained = {"search.training.steps": steps, "search.training.device": "cpu", "deliver.steps": steps}
    return Case({"task": {"name": name, "rows": 200}, "trials": trials}, trained | settings)


def _shared(*networks: str, task: str = "digits", **settings: Any) -> Case:
    quick = {"steps": 20, "training.batch": 16, "training.device": "cpu"}
    stages = {f"{name}.{option}": value for name in networks for option, value in quick.items()}
    searched = {"search.training.steps": 5, "search.training.device": "cpu"}
    return Case({"task": {"name": task, "rows": 200}, "trials": 5}, stages | searched | settings)


def _compressed(options: dict[str, Any], epochs: dict[str, int], **settings: Any) -> Case:
    quick = {"batch": 16, "length": 16, "device": "cpu", "threads": 1}
    trained = {f"{name}.epochs": number for name, number in {"teacher": 2, **epochs}.items()} | {
        f"{stage}.training.{option}": value
        for stage in ("teacher", *epochs, "search")
        for option, value in quick.items()
    }
    given = {"task": {"name": "{table}", "text": ["words"], "label": "b"}, "model": "{bert}", **options}
    return Case(given, {"teacher.accept_weak": True, **trained, **settings})


CASES = {
    "flexibert": _searched("mini-glue/sst2", 5, 10, **{"search.evaluator.steps": 5}),
    "autobert-zero": _searched("mini-glue/stsb", 5, 10, **{"search.evaluator.steps": 5}),
    "evolved-transformer": _searched("translation", 6, 9),
    "spos": _shared("super-network", **{"deliver.steps": 5}),
    "ofa": _shared("super-network", "super-network-2"),
    "hat": _shared("super-network", task="translation", **{"deliver.steps": 5, "search.limits": ["macs<=10M"]}),
    "linas": _shared(
        "super-network", **{"search.objectives": ["accuracy:max", "macs:min"], "search.searcher.batch": 2}
    ),
    "autoformer": _shared("super-network"),
    "supershaper": _shared("super-network", task="mini-glue/sst2", **{"deliver.steps": 5}),
    "autotinybert": _shared("super-network", task="mini-glue/sst2", **{"deliver.steps": 5}),
    "lighthubert": _shared("super-network", "super-network-2", task="{recordings}"),
    "magic": _shared("super-network", task="mini-glue/sst2", **{"deliver.steps": 5}),
    # the whole menu: what was measured then decides nothing, and two runs give the same
    "fast-bert-search": _shared("super-network", task="mini-glue/sst2", **{"menu.keep": 1.0, "deliver.steps": 5}),
    "autotinybert-kd": _shared("super-network", "super-network-2", task="mini-glue/sst2", **{"deliver.steps": 5}),
    "eftnas": _compressed(
        {"trials": 5}, {"super-network": 2}, **{"space.configurations": 3, "space.targets": ["macs=75%", "macs=50%"]}
    ),
    "dynabert": _compressed(
        {}, {"super-network": 1, "super-network-2": 1}, **{"multiples-2.targets": ["macs=75%", "macs=50%"]}
    ),
    # one cell of size and latency: what was measured then decides nothing, and two runs give the same
    "nas-bert": Case(
        {"model": "{bert}", "text": "{text}", "sizes": "3k,6k", "length": 12, "batch": 8, "device": "cpu"},
        {"blocks.steps": 4, "blocks.rounds": 2, "blocks.candidates": 60, "blocks.bins": 1, "blocks.least": 4}
        | {"choices.checked": 2, "students.steps": 4},
    ),
}


# What is measured differs between two runs: these must keep what was found before the kill, and their limits.
MEASURED = {
    "fast-bert-search": _shared("super-network", task="mini-glue/sst2", **{"menu.keep": 0.5, "deliver.steps": 5}),
    "autotinybert": Case(
        {"task": {"name": "mini-glue/sst2", "rows": 200}, "trials": 25, "latency": "{latency}"},
        _shared("super-network", **{"deliver.steps": 5}).settings,
    ),
    "hat": Case(
        {"task": {"name": "translation", "rows": 200}, "trials": 8, "limits": ["writing_30x5_ms<={latency}"]},
        _shared("super-network", **{"deliver.steps": 5}).settings,
    ),
}
# the space and the cost whose median is the wanted latency, and how far below and above it a design may be
LATENCIES = {
    "autotinybert": ("autotinybert-nano", "latency_ms", 0.85, 1.1),
    "hat": ("hat-nano", "writing_30x5_ms", 0.0, 1.0),
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
            "{recordings}": str(folder / "recordings"),
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
        own = {"latency": flags.pop("latency")} if "latency" in flags else {}
        flags["limit"] = " ".join(flags.pop("limits", ()))
        said = [word for name, value in flags.items() if value for word in (f"--{name}", str(value))]
        said += [word for name, value in own.items() for word in ("--set", f"{name}={value}")]
        said += [word for path, value in case.settings.items() for word in ("--set", f"{path}={json.dumps(value)}")]
        return ["-m", "formwright", run, *model, "--recipe", recipe, *said, "--workers", "1", "--out", str(out)]


def recordings(folder: Path) -> None:
    """Write tones of two heights, a folder for each."""
    for label, pitch in (("low", 200), ("high", 900)):
        for number in range(24):
            samples = 0.5 * np.sin(np.arange(1600) * 2 * np.pi * (pitch + number) / 8000)
            write_wav(folder / label / f"{number}.wav", samples)


def progress(out: Path) -> int:
    """Count the stages that are done and the trials that have an outcome, be it a score or a refusal."""
    ended = 0
    with suppress(FormwrightError), find(str(out)).open() as opened:  # which may not be made yet
        ended = sum(event.kind in ("told", "failed") for event in opened.log.read())
    # os.walk, unlike glob, passes over folders that the run removes meanwhile
    return ended + sum(DONE in files for _, _, files in os.walk(out))


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
    if "{recordings}" in json.dumps(case.options):
        recordings(tmp_path / "recordings")
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


def usual_latency(space: str, cost: str) -> float:
    """Measure the latency of a design in the middle of a space, in milliseconds."""
    designs = load_space(space)
    measured = COSTS.get(cost).meter(16, "cpu")
    times = sorted(measured(designs.card(designs.sample(derive(number, "usual")))) for number in range(9))
    return round(times[len(times) // 2], 3)


def findings(out: Path) -> dict[int, dict[str, float]]:
    """Give all metrics of every finished trial."""
    with find(str(out)).open() as opened:
        return {trial.number: dict(trial.observation.metrics) for trial in opened.history().finished}


@pytest.mark.parametrize("door", ["command line", "yaml", "python"])
@pytest.mark.parametrize("recipe", MEASURED)
def test_what_was_measured_before_a_kill_is_kept(recipe: str, door: str, tmp_path: Path) -> None:
    latency = usual_latency(*LATENCIES[recipe][:2]) if recipe in LATENCIES else None
    wanted = json.dumps(MEASURED[recipe].options).replace('"{latency}"', str(latency))  # a number, or in a limit
    options = json.loads(wanted.replace("{latency}", str(latency)))
    out = tmp_path / "out"
    command = Door(door).command(recipe, Case(options, MEASURED[recipe].settings), tmp_path, out)
    killed(command, out, 4)  # the super-network, the menu if there is one, and trials: scored, or beyond the limits
    before, menus = findings(out), [path.read_bytes() for path in out.glob("**/menu.json")]
    run(command)
    after = findings(out)
    assert {number: after[number] for number in before} == before
    assert [path.read_bytes() for path in out.glob("**/menu.json")] == menus
    assert list(out.glob("models/*/model.safetensors"))
    if latency is not None:
        _, cost, least, most = LATENCIES[recipe]
        assert all(least * latency <= one[cost] <= most * latency for one in after.values())
    else:
        (menu,) = (json.loads(text) for text in menus)
        assert 0 < len(menu["kept"]) < len(menu["milliseconds"])
