"""What delivered models cost: counted at the length of their study, and measured in turns in one session."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, MissingExtra
from formwright.core.records import Objective
from formwright.cost import COSTS, LATENCY, Meter, cost, input_size, is_measured, params
from formwright.cost import counted_costs as every_counted
from formwright.nn.deploy import export
from formwright.nn.deploy.exporters import quantise_onnx
from formwright.nn.hf.checkpoint_files import is_whole
from formwright.nn.hf.imported import load_folder
from formwright.nn.hf.readme import Facts, replace_table
from formwright.nn.measurement import ExportedFile, Measurable, ModelFolder, TimingSettings, measure_in_turns
from formwright.pipeline.chosen_designs import Candidate
from formwright.pipeline.delivered import (
    MEASURED,
    TOO_SLOW,
    Delivered,
    MeasurementSession,
    Miss,
    broken_limits,
    card_of_model,
    delivered,
    exceeds,
    last_session,
    misses,
    with_costs,
)
from formwright.pipeline.study_place import Opened
from formwright.study.identity import own_name
from formwright.train.device import choose_device

# what a session times in turns, by the name of the cost; other measured costs have meters of their own
RUNTIMES = {LATENCY: "torch", "onnx_ms": "ONNX Runtime", "int8_ms": "ONNX Runtime in 8 bits"}
_RUNS = 20  # of each model in each runtime
MARGIN = 0.05  # share by which a design that kept a limit in the search may be beyond it when it is measured again
_SITTINGS = 2  # the second where a model was measured beyond its target


class TargetMissed(EvaluationFailed):
    """Say that a design was measured beyond a target, so that the next best one is to be tried."""


def measured_before(opened: Opened, candidate: Candidate) -> dict[str, float]:
    """Measure what a design has to keep targets in, before it is trained and tested in vain; raise `TargetMissed`.

    One that misses a target is measured again before that is believed: the machine may have been busy for a moment.
    """
    by_cost: dict[str, list[Objective]] = {}
    for limit in (Objective.parse(opened.deliver.targets[name]) for name in candidate.keeps):
        if is_measured(limit.name):
            by_cost.setdefault(limit.name, []).append(limit)
    found = {name: _decided(opened, candidate.card, limits) for name, limits in by_cost.items()}
    check_targets(opened, candidate, found)
    return found


def measured_limits(opened: Opened, candidate: Candidate) -> dict[str, float]:
    """Measure a design again by the limits of its search, before it is trained; raise `EvaluationFailed` beyond them.

    A baseline has no limits to keep, and a design with targets is measured by these.
    """
    if candidate.role == "baseline" or opened.deliver.targets:
        return {}
    found: dict[str, float] = {}
    limits = [limit for limit in map(Objective.parse, opened.search.limits) if is_measured(limit.name)]
    for name in dict.fromkeys(limit.name for limit in limits):
        loosened = {limit: _loosened(limit) for limit in limits if limit.name == name}
        found[name] = value = _decided(opened, candidate.card, list(loosened.values()))
        for limit, looser in loosened.items():
            if not looser.meets(value):
                raise EvaluationFailed(
                    f"{name} was measured again at {value:.4g}, more than {MARGIN:.0%} beyond the limit {limit}"
                )
    return found


def _loosened(limit: Objective) -> Objective:
    assert limit.bound is not None
    share = 1 + MARGIN if limit.direction == "min" else 1 - MARGIN
    return Objective(limit.name, limit.direction, share * limit.bound)


def _decided(opened: Opened, card: Card, limits: Sequence[Objective]) -> float:
    meter = _meter(limits[0].name, opened.search.length, _device(opened))
    return meter.decided(card, _keeps(limits))


def _keeps(limits: Sequence[Objective]) -> Callable[[float], bool]:
    return lambda value: all(limit.meets(value) for limit in limits)


def _meter(name: str, length: int, device: str = "cpu") -> Meter:
    known: Any = COSTS.get(name)
    found: Meter = known.meter(length, device)
    return found


def check_targets(opened: Opened, candidate: Candidate, costs: Mapping[str, float]) -> None:
    """Raise `TargetMissed`, and note it, where what was measured of a design lies beyond a target it has to keep."""
    targets = opened.deliver.targets
    beyond = [name for name in candidate.keeps if exceeds(costs, targets[name])]
    found = {name: costs[Objective.parse(targets[name]).name] for name in beyond}
    if found:
        missed = [asdict(Miss(name, candidate.card.digest, candidate.trial, value)) for name, value in found.items()]
        opened.log.append("note", own_name(), {TOO_SLOW: missed})
        detail = ", ".join(f"{value:.4g} is beyond {targets[name]}" for name, value in found.items())
        raise TargetMissed(f"trial {candidate.trial} was measured, and {detail}")


def counted_costs(opened: Opened, card: Card) -> dict[str, float]:
    """Count the MACs of a design, and whatever else of it is a goal, a limit or a target of the study."""
    known = every_counted()
    names = [name for name in dict.fromkeys(("macs", *_named(opened))) if name in known and name != "params"]
    return {name: cost(card, name, opened.search.length) for name in names}


def _named(opened: Opened) -> list[str]:
    """List the names of goals, limits and targets."""
    search, targets = opened.search, opened.deliver.targets
    return [Objective.parse(text).name for text in (*search.objectives, *search.limits, *targets.values())]


def measure_delivered(opened: Opened, models: Sequence[Delivered]) -> list[Delivered]:
    """Measure all models of a study in one session, note it, and write it into their model cards.

    That is done where a measured cost is a goal or a limit, or the models are compressed ones; a session of the same
    models is not repeated. Models that are gone from their folders are left out.
    """
    known = {**delivered(opened), **{model.name: model for model in models}}
    there = [model for model in known.values() if is_whole(Path(model.path))]
    if not there or not (opened.deliver.targets or any(map(is_measured, _named(opened)))):
        return list(models)
    session = last_session(opened.log.read())
    if session is None or not all(session.of(model.name, model.digest) for model in there):
        session = _measure_session(opened, there)
        opened.log.append("note", own_name(), {MEASURED: asdict(session)})
    found = {model.name: with_costs(model, session) for model in there}
    for model in found.values():
        replace_table(Path(model.path), "Costs", cost_facts(opened, model.name, card_of_model(model), model.costs))
    return [found.get(model.name, model) for model in models]


def _measure_session(opened: Opened, models: Sequence[Delivered]) -> MeasurementSession:
    """Measure models in turns: in torch, and compressed ones in ONNX Runtime too, there also in 8 bits.

    Runtimes that are not installed are left out. Where a model misses its target by that, all are measured once more:
    the least of both counts.
    """
    trial = TimingSettings(length=opened.search.length, runs=_RUNS, device=_device(opened))
    others = [name for name in dict.fromkeys(_named(opened)) if is_measured(name) and name not in RUNTIMES]
    meters = {name: _meter(name, trial.length, trial.device) for name in others}
    limits = list(map(Objective.parse, opened.search.limits))
    own = {name: [limit for limit in limits if limit.name == name] for name in others}
    least = {
        model.name: {name: meters[name].decided(card_of_model(model), _keeps(own[name])) for name in others}
        for model in models
    }
    busy = any(meter.busy for meter in meters.values())
    with tempfile.TemporaryDirectory() as folder:
        subjects = _subjects(models, Path(folder), runtimes=bool(opened.deliver.targets))
        for _ in range(_SITTINGS):
            found = measure_in_turns([subject for _, _, subject in subjects], trial)
            for (name, way, _), latency in zip(subjects, found, strict=True):
                least[name][way] = min(latency.median_ms, least[name].get(way, latency.median_ms))
                busy |= latency.busy
            missed = any(exceeds(least[name], limit) for name, limit in opened.deliver.targets.items() if name in least)
            if not missed and not any(broken_limits(opened, model, least[model.name]) for model in models):
                break
    digests = {model.name: model.digest for model in models}
    return MeasurementSession(trial.length, trial.device, trial.threads, busy, least, digests)


def _device(opened: Opened) -> str:
    """Name the device that models are measured on: that of the study, but compressed ones on the processor."""
    return "cpu" if opened.deliver.targets else choose_device(opened.search.training.device).type


def _subjects(models: Sequence[Delivered], folder: Path, runtimes: bool) -> list[tuple[str, str, Measurable]]:
    """List what is timed of each model: its name, the name of the cost, and what is run."""
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


def cost_facts(opened: Opened, name: str, card: Card, costs: Mapping[str, float]) -> Facts:
    """Name the costs of a model as a reader of its model card understands them; the length stands next to each."""
    size, device = input_size(card, opened.search.length), _device(opened)
    facts: dict[str, object] = {"parameters": params(card)}
    for cost_name, value in costs.items():
        if cost_name in RUNTIMES:
            where = "one thread" if device == "cpu" else device
            facts[f"milliseconds of one row at {size} in {RUNTIMES[cost_name]}, {where}"] = f"{value:.2f}"
        elif is_measured(cost_name):
            facts[f"{cost_name} at {size}"] = f"{value:.4g}"
        else:
            shown = "multiply-accumulates" if cost_name == "macs" else cost_name
            facts[f"{shown} at {size}"] = int(value)
    limit = opened.deliver.targets.get(name)
    if limit is not None:
        tried = len(misses(opened.log.read()).get(name, ()))
        facts["target"] = _kept_or_not(limit, size, tried, missed=exceeds(costs, limit))
    return facts


def _kept_or_not(limit: str, size: str, tried: int, *, missed: bool) -> str:
    """Say what a model was made for, whether it keeps it, and how many designs were measured beyond it."""
    wanted = Objective.parse(limit)
    assert wanted.bound is not None
    amount = f"{wanted.bound:,.0f}" if wanted.bound >= 1000 else f"{wanted.bound:g}"
    asked = f"{wanted.name} at most {amount}" + ("" if wanted.name.startswith("params") else f" at {size}")
    if missed:
        best = f", the best of {tried} designs that were tried" if tried > 1 else ""
        return f"{asked}; exceeded when it was measured{best}"
    return f"{asked}; kept when it was measured, after {tried} that were not" if tried else asked
