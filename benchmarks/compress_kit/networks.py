"""Super-networks that differ in one thing: the order of their parts, or the space they are searched in."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from compress_kit.bench import ORDERS, SHARES, Bench, Row
from compress_kit.searching import Network, best_models, curve, points_of, searched, whole_validations
from formwright.arch.card import Card
from formwright.evaluate.shared import RaceRules, SharedWeights
from formwright.pipeline.draw_space import MARGIN
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import is_done, mark_done
from formwright.pipeline.score_parts import ScoreParts
from formwright.space.elastic import ElasticChoices
from formwright.supernet.automatic import MULTIPLE, BudgetMatch, Thresholds, automatic, sub_network, targets_between
from formwright.supernet.hull import find_hull
from formwright.supernet.importance import Importance
from formwright.supernet.network import SuperNetwork, copy_of_teacher


@dataclass(frozen=True)
class Arm:
    """A super-network: how its parts are ordered, how its space is made, and with how many widths a layer.

    `length` are the epochs and the evaluations, where these are not the setting's.
    """

    order: str = "first-order"
    space: str = "automatic"
    configurations: int = 5
    length: tuple[float, int] | None = None

    @property
    def name(self) -> str:
        length = "" if self.length is None else f"-{self.length[0]:g}-epochs-{self.length[1]}"
        return f"network-{self.order}-{self.space}-{self.configurations}{length}"


def run(bench: Bench, arm: Arm) -> Row:
    """Train the super-network of an arm, search its front, and test what is best at each share of the MACs."""
    began = time.perf_counter()
    network = trained(bench, arm)
    seconds = time.perf_counter() - began
    evaluations = bench.setting.evaluations if arm.length is None else arm.length[1]
    history = searched(bench, network, "linas", evaluations, RaceRules())
    at = best_models(bench, network, history, arm.name)
    return {
        "front": points_of(bench, history),
        "at": at,
        "hypervolume": bench.volumes(at),
        "curve": curve(bench, history),
        "training seconds": seconds,
        "search seconds": time.perf_counter() - began - seconds,
        "validations": whole_validations(bench, history),
        "sub_networks": float(network.choices.count),
    }


def trained(bench: Bench, arm: Arm) -> Network:
    """Train the super-network of an arm as the command does, in a folder of its own; one that is there is read."""
    choices, met = _space_of(bench, arm)
    epochs = bench.setting.epochs if arm.length is None else arm.length[0]
    teacher, scores = bench.stage(FineTune), ScoreParts(bench.stage(FineTune), "l1")
    shared = replace(bench.shared, space=choices.space, teacher=teacher, order=scores, epochs=epochs)
    run = PipelineRun(Pipeline(teacher, scores, shared), bench.out / arm.name, bench.run.options, bench.run.display)
    run._artifacts |= {"teacher": bench.made(teacher), "scores": bench.scores(arm.order)}
    here = run.stage(shared)
    if not is_done(here, "benchmark"):
        _ = bench.heard  # what the teacher says is asked once for all arms
        here.checkpoints.mkdir(parents=True, exist_ok=True)
        shutil.copy(bench.answers, here.checkpoints / bench.answers.name)
        shared.make(here)
        mark_done(here, "benchmark")
    return Network(SharedWeights.read(here.folder, bench.prepared.task, bench.length), choices, tuple(met), run.out)


def _space_of(bench: Bench, arm: Arm) -> tuple[ElasticChoices, list[BudgetMatch]]:
    """Make the space: drawn up by importance, or a grid of equal steps with as many widths for every layer.

    Importance is of first order whatever the order of the parts is, so that arms of orders differ in nothing else.
    """
    if arm.space == "grid":
        return grid(bench.card, arm.configurations, bench.cost)
    goals = targets_between(*bench.low_and_high(), arm.configurations)
    return automatic(Thresholds(bench.card, bench.scores("first-order").space, bench.cost), goals, whole=True)


def grid(card: Card, number: int, cost: Callable[[Card], float]) -> tuple[ElasticChoices, list[BudgetMatch]]:
    """Let every layer have the same widths, at equal steps down to what the lowest target leaves.

    The sub-networks that are as wide everywhere come with it, as the cuts do with the space of importance.
    """
    assert card.encoder is not None
    layers, (heads, channels) = len(card.encoder.layers), _full(card)
    even = [
        (max(1, round(share * heads)), -(-round(share * channels) // MULTIPLE) * MULTIPLE)
        for share in np.linspace(MARGIN * min(SHARES), 1, number)
    ]
    counts, widths = (tuple(sorted(set(some))) for some in zip(*even, strict=True))
    costs = [cost(sub_network(card, (one,) * layers)) for one in even]
    met = [BudgetMatch(spent, spent, (one,) * layers, "macs") for one, spent in zip(even, costs, strict=True)]
    return ElasticChoices(card, (counts,) * layers, (widths,) * layers), met


def super_network(
    bench: Bench, choices: ElasticChoices, order: Importance, heard: nn.Module | None = None
) -> SuperNetwork:
    """Make the super-network of the teacher, yet to be trained."""
    start = copy_of_teacher(bench.teacher, order, whole_embedding=True)
    return SuperNetwork(start, bench.shared.rule.bind(find_hull(choices.space), 1), heard)


def _full(card: Card) -> tuple[int, int]:
    assert card.encoder is not None
    block: Any = card.encoder.layers[0]
    return block.mixer.heads, block.feed_forward[0]


def untrained(bench: Bench) -> Row:
    """Judge what reordering alone leaves: the teacher cut to a share of heads and channels, without any training."""
    found = {}
    heads, channels = _full(bench.card)
    layers = len(bench.card.encoder.layers)  # type: ignore[union-attr]
    choices, _ = grid(bench.card, 5, bench.cost)
    for order in ORDERS:
        network = super_network(bench, choices, bench.scores(order).order).eval()
        for share in (0.9, 0.75, 0.5, 0.25):
            card = sub_network(bench.card, ((max(1, round(share * heads)), round(share * channels)),) * layers)
            found[f"{order} {share:.0%}"] = bench.validated(network.extracted(card))
    return {"scores": found}
