"""Super-networks that differ in one thing: the order of their parts, or the space they are searched in."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from compress_kit.bench import SHARES, Bench, Row
from compress_kit.searching import Network, best_models, curve, points_of, searched, whole_validations
from formwright.arch.card import Card
from formwright.compress.folders import Folders
from formwright.compress.trainings import MARGIN, make_network, ordering, space_scores, super_network
from formwright.evaluate.race import Rules
from formwright.evaluate.shared import SharedWeights
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.automatic import MULTIPLE, Met, Thresholds, automatic, sub_network, targets_between


@dataclass(frozen=True)
class Arm:
    """A super-network: how its parts are ordered, how its space is made, and with how many widths a layer."""

    order: str = "first-order"
    space: str = "automatic"
    configurations: int = 5

    @property
    def name(self) -> str:
        return f"network-{self.order}-{self.space}-{self.configurations}"


def run(bench: Bench, arm: Arm) -> Row:
    """Train the super-network of an arm, search its front, and test what is best at each share of the MACs."""
    began = time.perf_counter()
    network = trained(bench, arm)
    seconds = time.perf_counter() - began
    history = searched(bench, network, "linas", bench.setting.evaluations, Rules())
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
    folders = Folders(bench.out / arm.name)
    folders.out.mkdir(parents=True, exist_ok=True)
    if not folders.network.is_dir():
        _ = bench.heard  # what the teacher says is asked once for all arms
        for name in ("importance", "movement", "answers"):
            shutil.copy(getattr(bench.folders, name), getattr(folders, name))
        method = bench.otherwise(order=arm.order, configurations=arm.configurations)
        super_network(bench.started.begun, bench.teacher, choices, bench.plan, method, folders, bench.conduct)
    task, length = bench.started.begun.prepared.task, bench.started.length
    return Network(SharedWeights.read(folders.network, task, length), choices, tuple(met), folders.out)


def _space_of(bench: Bench, arm: Arm) -> tuple[ElasticChoices, list[Met]]:
    """Make the space: drawn up by importance, or a grid of equal steps with as many widths for every layer."""
    _ = bench.teacher
    full = bench.cost(bench.card)
    if arm.space == "grid":
        return _grid(bench, arm.configurations), []
    scores = space_scores(bench.otherwise(order=arm.order), bench.folders)
    goals = targets_between(MARGIN * min(SHARES) * full, full, arm.configurations)
    return automatic(Thresholds(bench.card, scores, bench.cost), goals, whole=True)


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
            found[f"{order} {share:.0%}"] = bench.validated(network.extracted(card))
    return {"scores": found}
