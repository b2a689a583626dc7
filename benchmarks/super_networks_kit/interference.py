"""How far designs that share a layer disturb each other: cosines of the gradients of that layer.

Settings, fixed before the first result: a super-network of `autoformer-nano-28` after 1,000 steps of uniform sampling
on Fashion-MNIST, seeds 0, 1 and 2. Pairs of designs of width 48 with four layers have the same first layer, and differ
in 1 to 6 of the six choices (heads and ratios) of the other three. Both see the same batch of 64; the figure is the
cosine of the gradients of the first layer's tensors, averaged over 30 pairs. Intervals of 95 % resample pairs.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.supernet.network import StepTrackingStream, SuperNetwork
from formwright.train.device import threads
from formwright.train.fit import task_stream
from formwright.train.loop import inputs_of, train
from formwright.train.losses import loss_of
from formwright.train.streams import Batch
from super_networks_kit.fashion import fashion
from super_networks_kit.ranking import SPACE, Arm, super_network, training
from super_networks_kit.units import RESAMPLES, Row, Units, interval, shown, table

STEPS, PAIRS = 1_000, 30
_HEADS, _RATIOS = (1, 2, 4), (0.5, 1.0, 2.0)


def pair(rng: Generator, differing: int) -> tuple[Card, Card]:
    """Draw two designs that have the first layer in common and differ in a given number of other choices."""
    first = [[_HEADS[int(rng.integers(3))], _RATIOS[int(rng.integers(3))]] for _ in range(4)]
    second = [list(layer) for layer in first]
    for gene in rng.permutation(6)[:differing]:
        layer, place = 1 + int(gene) // 2, int(gene) % 2
        options = [one for one in (_HEADS, _RATIOS)[place] if one != first[layer][place]]
        second[layer][place] = options[int(rng.integers(len(options)))]
    one, other = (
        SPACE.card(
            SPACE.from_json({"width": 48, "layers": [{"heads": heads, "ratio": ratio} for heads, ratio in layers]})
        )
        for layers in (first, second)
    )
    return one, other


def gradient(network: SuperNetwork, card: Card, batch: Batch, loss: Any) -> torch.Tensor:
    """Give the gradient of the first layer for one design, as one vector."""
    network.zero_grad(set_to_none=True)
    loss(network.answer(card, *inputs_of(batch)), batch).backward()
    named = [one for name, one in network.model.named_parameters() if ".layers.0." in name]
    return torch.cat([tensor.grad.flatten() for tensor in named if tensor.grad is not None])


def measured(data: Path, seed: int) -> Row:
    """Train a super-network, and compare gradients."""
    task, how = fashion(data), training(STEPS, seed)
    arm = Arm()
    made, prepared = super_network(task, arm, how)
    stream = task_stream(prepared, how.recipe)
    train(made, StepTrackingStream(stream, made), arm.loss(task, made, prepared, how), how.recipe)
    found, loss = {}, loss_of(task.kind)
    for differing in range(1, 7):
        rng, cosines = derive(seed, "pairs", differing), []
        for number in range(PAIRS):
            batch = stream.batch(STEPS + number)
            one, other = (gradient(made, card, batch, loss) for card in pair(rng, differing))
            cosines.append(float(torch.nn.functional.cosine_similarity(one, other, dim=0)))
        found[str(differing)] = cosines
    return found


def work(units: Units, data: Path, seeds: int) -> None:
    for seed in range(seeds):
        with threads(1):
            units.kept(f"interference-{seed}", lambda seed=seed: measured(data, seed))  # type: ignore[misc]


def figures(units: Units, seeds: int) -> Row:
    rows = [units.rows[key] for seed in range(seeds) if (key := f"interference-{seed}") in units.rows]
    found: Row = {"seeds": len(rows), "cosines": {}}
    for differing in rows[0] if rows else ():
        every = np.concatenate([row[differing] for row in rows])
        rng = derive(0, "bootstrap")
        samples = [float(rng.choice(every, len(every)).mean()) for _ in range(RESAMPLES)]
        found["cosines"][differing] = interval(float(every.mean()), samples)
    return found


def page(found: Row) -> str:
    rows = [(differing, shown(one)) for differing, one in found["cosines"].items()]
    return (
        f"{table(('choices that differ', 'cosine of gradients of the shared layer'), rows)}\n\n{found['seeds']} seeds."
    )
