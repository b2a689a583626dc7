"""Super-networks that differ in one thing: the order of their parts, or the space they are searched in."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compress_kit.bench import SHARES, Bench, Row
from formwright.arch.card import Card
from formwright.compress.folders import Folders
from formwright.compress.trainings import MARGIN, make_network, ordering, space_scores, super_network
from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.evaluate.combine import Combine
from formwright.evaluate.context import Context
from formwright.evaluate.race import Rules
from formwright.evaluate.shared import STOPPED, Shared, SharedWeights
from formwright.search import make_searcher
from formwright.search.first import First
from formwright.search.fronts import hypervolume
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.automatic import MULTIPLE, Met, Thresholds, automatic, sub_network, targets_between
from formwright.testing.loop import ask, tell
from formwright.train.judge import judge


@dataclass(frozen=True)
class Arm:
    """A super-network: how its parts are ordered, how its space is made, and with how many widths a layer."""

    order: str = "first-order"
    space: str = "automatic"
    configurations: int = 5

    @property
    def name(self) -> str:
        return f"network-{self.order}-{self.space}-{self.configurations}"


def run(bench: Bench, arm: Arm, evaluations: int) -> Row:
    """Train the super-network of an arm, search its front, and test what is best at each share of the MACs."""
    began = time.perf_counter()
    choices, met = space_of(bench, arm)
    network = trained(bench, arm, choices)
    seconds = time.perf_counter() - began
    history, spent = searched(bench, network, choices, met, "linas", evaluations, Rules())
    points = points_of(bench, history)
    return {
        "front": points,
        "hypervolume": volume(bench, points),
        "at": best_models(bench, network, history, arm.name),
        "random": random_models(bench, network, choices),
        "seconds": seconds,
        "validations": spent,
        "sub_networks": float(choices.count),
    }


def space_of(bench: Bench, arm: Arm) -> tuple[ElasticChoices, list[Met]]:
    """Make the space: drawn up by importance, or a grid of equal steps with as many widths for every layer."""
    _ = bench.teacher
    goals = targets_between(MARGIN * min(SHARES) * bench.cost(bench.card), bench.cost(bench.card), arm.configurations)
    if arm.space == "automatic":
        scores = space_scores(bench.otherwise(order=arm.order), bench.folders)
        thresholds = Thresholds(bench.card, scores, bench.cost)
        return automatic(thresholds, goals, whole=True)
    return _grid(bench, arm.configurations), []


def _grid(bench: Bench, number: int) -> ElasticChoices:
    """Let every layer have the same widths, at equal steps down to what the lowest target leaves."""
    assert bench.card.encoder is not None
    layers = len(bench.card.encoder.layers)
    heads, channels = _full(bench.card)
    shares = np.linspace(MARGIN * min(SHARES), 1, number)
    counts = tuple(sorted({max(1, round(share * heads)) for share in shares}))
    widths = tuple(sorted({-(-round(share * channels) // MULTIPLE) * MULTIPLE for share in shares}))
    return ElasticChoices(bench.card, (counts,) * layers, (widths,) * layers)


def _full(card: Card) -> tuple[int, int]:
    assert card.encoder is not None
    block: Any = card.encoder.layers[0]
    return block.mixer.heads, block.feed_forward[0]


def trained(bench: Bench, arm: Arm, choices: ElasticChoices) -> SharedWeights:
    """Train the super-network of an arm as the command does, in a folder of its own."""
    folders = Folders(bench.out / arm.name)
    folders.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(bench.folders.importance, folders.importance)
    shutil.copy(bench.folders.movement, folders.movement)
    method = bench.otherwise(order=arm.order, configurations=arm.configurations)
    super_network(bench.started.begun, bench.teacher, choices, bench.plan, method, folders, bench.conduct)
    prepared = bench.started.begun.prepared
    return SharedWeights.read(folders.network, prepared.task, bench.setting.length)


def searched(
    bench: Bench,
    network: SharedWeights,
    choices: ElasticChoices,
    met: Sequence[Met],
    searcher: str,
    evaluations: int,
    rules: Rules | None,
    folder: Path | None = None,
) -> tuple[History, float]:
    """Search a front in one process; give the trials, and how many whole validations their rows come to."""
    task, space = network.prepared.task, choices.space
    objectives = (Objective(task.metric, "max"), Objective("macs", "min"))
    made = make_searcher(searcher, space, objectives, trials=evaluations)
    first = First(space, tuple(choices.design(one.widths) for one in met), made)
    evaluator = Combine((Shared(network, bench.cost, rules),), {"macs": bench.cost})
    folder = folder or bench.out / "answers-of" / f"{searcher}-{id(network)}"
    history, rows = History(), len(network.prepared.validation.examples)
    spent = 0.0
    for number in range(evaluations):
        history = ask(first, history, bench.setting.seed)
        found = evaluator.evaluate(history.trials[number].request, Context(folder=folder, history=history))
        history = tell(history, number, found)
        stopped = found.artifacts.get(STOPPED)
        spent += 1.0 if stopped is None else int(stopped.split()[0]) / rows
    shutil.rmtree(folder, ignore_errors=True)
    return history, spent


def points_of(bench: Bench, history: History) -> list[tuple[float, float]]:
    """List MACs as shares of the teacher's, and scores, of all trials."""
    metric = bench.started.begun.prepared.task.metric
    full = bench.cost(bench.card)
    return [
        (trial.observation.metrics["macs"] / full, trial.observation.metrics[metric])
        for trial in history.finished
        if trial.observation is not None
    ]


def volume(bench: Bench, points: Sequence[tuple[float, float]]) -> float:
    """Give the hypervolume above chance and below the teacher's MACs."""
    chance = bench.started.begun.prepared.task.chance or 0.0
    return hypervolume(np.array(points), (1.0 + 1e-9, chance), ("min", "max"))


def best_models(bench: Bench, network: SharedWeights, history: History, name: str) -> dict[str, Row]:
    """Test the sub-network that validates best at each share of the MACs."""
    metric, full = network.prepared.task.metric, bench.cost(bench.card)
    found: dict[str, Row] = {}
    for share in SHARES:
        fit = [one for one in history.finished if one.observation.metrics["macs"] <= share * full]  # type: ignore[union-attr]
        if fit:
            best = max(fit, key=lambda one: (one.observation.metrics[metric], -one.observation.metrics["macs"]))  # type: ignore[union-attr]
            model = network.extracted(best.request.card)  # type: ignore[arg-type]
            found[f"{share:.0%}"] = bench.judged(model, f"{name}-{share:.0%}") | {"card": best.request.card.to_json()}
    return found


def random_models(bench: Bench, network: SharedWeights, choices: ElasticChoices, number: int = 10) -> dict[str, Row]:
    """Judge sub-networks drawn at random just below each share: the mean is what no search would give."""
    rng, space, full = derive(bench.setting.seed, "random"), choices.space, bench.cost(bench.card)
    found: dict[str, Row] = {}
    for share in SHARES:
        scores: list[float] = []
        for _ in range(20_000):
            card = space.card(space.sample(rng))
            if 0.9 * share <= bench.cost(card) / full <= share:
                model = network.extracted(card)
                scores.append(judge(model, network.prepared, network.prepared.validation)[network.prepared.task.metric])
            if len(scores) == number:
                break
        if scores:
            found[f"{share:.0%}"] = {"mean": float(np.mean(scores)), "best": max(scores), "number": len(scores)}
    return found


def untrained(bench: Bench) -> Row:
    """Judge what reordering alone leaves: the teacher cut to a share of heads and channels, without any training."""
    known, found = bench.teacher, {}
    heads, channels = _full(bench.card)
    layers = len(bench.card.encoder.layers)  # type: ignore[union-attr]
    grid = _grid(bench, 5)
    for order in ("first-order", "movement", "l1", "none"):
        method = bench.otherwise(order=order)
        network = make_network(known, grid, ordering(known, method, bench.folders), method).eval()
        for share in (0.9, 0.75, 0.5, 0.25):
            card = sub_network(bench.card, ((max(1, round(share * heads)), round(share * channels)),) * layers)
            prepared = bench.started.begun.prepared
            scores = judge(network.extracted(card), prepared, prepared.validation)
            found[f"{order} {share:.0%}"] = scores[prepared.task.metric]
    return {"scores": found}


def searches(bench: Bench, arm: Arm, many: int = 1000, few: int = 400) -> Row:
    """Compare ways to search one trained super-network by whole validations and the hypervolume they reach."""
    choices, met = space_of(bench, arm)
    network = trained(bench, arm, choices)
    found: dict[str, Any] = {}
    plans = {
        "nsga2": (many, None),
        "nsga2-racing": (many, Rules()),
        "linas": (few, None),
        "linas-racing": (few, Rules()),
    }
    for name, (evaluations, rules) in plans.items():
        history, spent = searched(bench, network, choices, met, name.removesuffix("-racing"), evaluations, rules)
        found[name] = {"curve": _curve(bench, history), "validations": spent, "seconds": _seconds(history)}
    return found


def _curve(bench: Bench, history: History) -> list[tuple[float, float]]:
    """List, trial after trial, the whole validations so far and the hypervolume reached."""
    points = points_of(bench, history)
    rows = len(bench.started.begun.prepared.validation.examples)
    curve, spent = [], 0.0
    for number, trial in enumerate(history.finished, start=1):
        stopped = trial.observation.artifacts.get(STOPPED)  # type: ignore[union-attr]
        spent += 1.0 if stopped is None else int(stopped.split()[0]) / rows
        curve.append((spent, volume(bench, points[:number])))
    return curve


def _seconds(history: History) -> float:
    return sum(trial.observation.spent.seconds for trial in history.finished if trial.observation is not None)
