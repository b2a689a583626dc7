"""What delivered models cost: counted at the length of their study, and measured in turns in one sitting."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from formwright.arch.card import Card
from formwright.core.errors import MissingExtra
from formwright.core.records import Objective
from formwright.cost import cost, input_size, is_measured, params
from formwright.cost import counted_costs as every_counted
from formwright.cost.measured import LATENCY
from formwright.nn.deploy import export
from formwright.nn.deploy.exporters import quantise_onnx
from formwright.nn.hf.checkpoint_files import is_whole
from formwright.nn.hf.imported import load_folder
from formwright.nn.hf.readme import Facts, replace_table
from formwright.nn.measure import ExportedFile, Measurable, ModelFolder, TimingSettings, measure, measure_in_turns
from formwright.nn.task_model import TaskModel
from formwright.pipeline.candidates import exceeds, misses
from formwright.pipeline.delivered import (
    MEASURED,
    RUNTIMES,
    Delivered,
    Sitting,
    card_of_model,
    delivered,
    last_sitting,
    with_costs,
)
from formwright.pipeline.run_folder import Opened
from formwright.study.identity import own_name
from formwright.train.device import choose_device

_RUNS = 20  # of each model in each runtime
_SITTINGS = 2  # the second where a model was measured beyond its target


def counted_costs(opened: Opened, card: Card) -> dict[str, float]:
    """Count the MACs of a design, and whatever else of it is a goal, a limit or a target of the study."""
    search, targets = opened.search, opened.deliver.targets
    known = every_counted()
    named = (Objective.parse(text).name for text in (*search.objectives, *search.limits, *targets.values()))
    names = [name for name in dict.fromkeys(("macs", *named)) if name in known and name != "params"]
    return {name: cost(card, name, search.length) for name in names}


def measure_delivered(opened: Opened, models: Sequence[Delivered]) -> list[Delivered]:
    """Measure all models of a study in one sitting, note it, and write it into their model cards.

    That is done where latency is a goal or a limit, or the models are compressed ones; a sitting of the same models is
    not repeated. Models that are gone from their folders are left out.
    """
    known = {**delivered(opened), **{model.name: model for model in models}}
    there = [model for model in known.values() if is_whole(Path(model.path))]
    if not _is_timed(opened) or not there:
        return list(models)
    sitting = last_sitting(opened.log.read())
    if sitting is None or not all(sitting.of(model.name, model.digest) for model in there):
        sitting = _sit(opened, there)
        opened.log.append("note", own_name(), {MEASURED: sitting.to_json()})
    found = {model.name: with_costs(model, sitting) for model in there}
    for model in found.values():
        replace_table(Path(model.path), "Costs", cost_facts(opened, model.name, card_of_model(model), model.costs))
    return [found.get(model.name, model) for model in models]


def cost_facts(opened: Opened, name: str, card: Card, costs: Facts) -> Facts:
    """Name the costs of a model as a reader of its model card understands them; the length stands beside each."""
    size = input_size(card, opened.search.length)
    facts: dict[str, object] = {"parameters": params(card)}
    for cost_name, value in costs.items():
        if cost_name in RUNTIMES:
            where = "one thread" if _device(opened) == "cpu" else _device(opened)
            facts[f"milliseconds of one row at {size} in {RUNTIMES[cost_name]}, {where}"] = f"{value:.2f}"
        else:
            shown = "multiply-accumulates" if cost_name == "macs" else cost_name
            facts[f"{shown} at {size}"] = int(float(str(value)))
    return facts | _target(opened, name, costs, size)


def torch_ms(model: TaskModel, length: int) -> float:
    """Measure one row of a model in torch, on one thread."""
    return measure(model, TimingSettings(length=length, runs=_RUNS), memory=False).median_ms


def _is_compressed(opened: Opened) -> bool:
    """Tell whether the models are smaller versions of a model, which people compare in several runtimes."""
    return bool(opened.deliver.targets)


def _is_timed(opened: Opened) -> bool:
    named = [Objective.parse(text).name for text in (*opened.search.objectives, *opened.search.limits)]
    return _is_compressed(opened) or any(map(is_measured, named))


def _sit(opened: Opened, models: Sequence[Delivered]) -> Sitting:
    """Measure models in turns: in torch, and compressed ones in ONNX Runtime too, there also in 8 bits.

    Runtimes that are not installed are left out. Where a model misses its target by that, all are measured once more:
    the least of both counts.
    """
    trial = TimingSettings(length=opened.search.length, runs=_RUNS, device=_device(opened))
    least: dict[str, dict[str, float]] = {model.name: {} for model in models}
    busy = False
    with tempfile.TemporaryDirectory() as folder:
        subjects = _subjects(models, Path(folder), runtimes=_is_compressed(opened))
        for _ in range(_SITTINGS):
            found = measure_in_turns([subject for _, _, subject in subjects], trial)
            for (name, way, _), latency in zip(subjects, found, strict=True):
                least[name][way] = min(latency.median_ms, least[name].get(way, latency.median_ms))
                busy |= latency.busy
            if not any(exceeds(least[name], limit) for name, limit in opened.deliver.targets.items() if name in least):
                break
    digests = {model.name: model.digest for model in models}
    return Sitting(trial.length, trial.device, trial.threads, busy, least, digests)


def _device(opened: Opened) -> str:
    """Name the device that models are measured on: that of the study, but compressed ones on the processor."""
    return "cpu" if _is_compressed(opened) else choose_device(opened.search.training.device).type


def _subjects(models: Sequence[Delivered], folder: Path, runtimes: bool) -> list[tuple[str, str, Measurable]]:
    """List what is measured of each model: its name, the name of the cost, and what is run."""
    found: list[tuple[str, str, Measurable]] = []
    for model in models:
        found.append((model.name, LATENCY, ModelFolder(Path(model.path))))
        with suppress(MissingExtra):  # of the extra `onnx`
            if runtimes:
                card = card_of_model(model)
                path = export(load_folder(model.path), "onnx", folder / model.name).path
                small = path.with_name("int8.onnx")
                quantise_onnx(path, small)  # which is sooner done than to export the model once more
                found.append((model.name, "onnx_ms", ExportedFile(path, card)))
                found.append((model.name, "int8_ms", ExportedFile(small, card)))
    return found


def _target(opened: Opened, name: str, costs: Facts, size: str) -> dict[str, str]:
    """Say what a model was made for, whether it keeps it, and how many designs were measured beyond it."""
    limit, tried = opened.deliver.targets.get(name), len(misses(opened.log.read()).get(name, ()))
    if limit is None:
        return {}
    wanted, measured = Objective.parse(limit), {key: float(str(value)) for key, value in costs.items()}
    assert wanted.bound is not None
    amount = f"{wanted.bound:,.0f}" if wanted.bound >= 1000 else f"{wanted.bound:g}"
    asked = f"{wanted.name} at most {amount}" + ("" if wanted.name.startswith("params") else f" at {size}")
    fastest = f", the fastest of {tried} designs that were tried" if tried > 1 else ""
    if exceeds(measured, limit):
        return {"target": f"{asked}; exceeded when it was measured{fastest}"}
    return {"target": f"{asked}; kept when it was measured, after {tried} that were not" if tried else asked}
