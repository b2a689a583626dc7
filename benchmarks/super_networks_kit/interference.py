"""How far designs that share a layer disturb each other: cosines of the gradients of that layer.

Settings, fixed before the first result:

- Super-networks after 1,000 steps, seeds 0, 1 and 2: of `magic-nano` (chains of six operations, each with weights of
  its own) on mini-glue/sst2, and of `autoformer-nano-28` (slices of one network) on Fashion-MNIST. They are trained by
  each rule of MAGIC's comparison: uniform sampling, the sandwich (334 steps of three designs, the one between drawn as
  the others), a walk, and a walk with an anchor.
- Pairs of designs have the same first layer, and differ in 1, 2, ... of the other choices: the operations of the five
  layers behind it, or the six choices of heads and ratios of three layers behind it (width 48). Both see the same
  batch of 64. The figure is the cosine of the gradients of the tensors of the first layer, over 30 pairs; the same
  pairs and batches for all rules.
- Intervals of 95 % are those of Student's t over the seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.random import Generator

from formwright.api import run
from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.zoo import load_space
from formwright.supernet.inner_lessons import Anchor
from formwright.supernet.lessons import Labels, Lesson
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Rule, Sandwich, Uniform, Walk
from formwright.train.device import threads
from formwright.train.fit import task_stream
from formwright.train.loop import inputs_of
from formwright.train.losses import loss_of
from formwright.train.streams import Batch
from super_networks_kit.units import Row, Units, over_seeds, shown, table

STEPS, PAIRS = 1_000, 30
_USUAL = TrainingChoice(batch=64, device="cpu")


@dataclass(frozen=True)
class Arm:
    """How a super-network is trained."""

    rule: Rule
    lesson: Lesson = Labels()
    steps: int = STEPS


RULES = {
    "uniform": Arm(Uniform()),
    "sandwich": Arm(Sandwich(between=1, by="gene"), steps=-(-STEPS // 3)),
    "walk": Arm(Walk()),
    "walk with anchor": Arm(Walk(), Anchor()),
}


@dataclass(frozen=True)
class Pairs:
    """A space, the choices behind the first layer, and how a list of them becomes a design."""

    task: str
    choices: tuple[tuple[Any, ...], ...]
    design: Callable[[Any, list[Any]], Any]  # of the choice of the first layer, and the others
    first: tuple[Any, ...]

    def draw(self, rng: Generator, differing: int) -> tuple[Any, Any]:
        """Draw two designs, as JSON, that differ in so many choices."""
        one = [options[int(rng.integers(len(options)))] for options in self.choices]
        other = list(one)
        for place in rng.permutation(len(one))[:differing]:
            options = [value for value in self.choices[place] if value != one[place]]
            other[place] = options[int(rng.integers(len(options)))]
        first = self.first[int(rng.integers(len(self.first)))]
        return self.design(first, one), self.design(first, other)


def _slices(first: Any, others: list[Any]) -> Any:
    layers = [first, *({"heads": heads, "ratio": ratio} for heads, ratio in zip(*[iter(others)] * 2, strict=True))]
    return {"width": 48, "layers": layers}


_HEADS, _RATIOS = (1, 2, 4), (0.5, 1.0, 2.0)
_OPERATIONS = ("attention-3", "attention-4", "separable-3", "separable-5", "feed-forward")
SPACES = {
    "magic-nano": Pairs(
        "mini-glue/sst2",
        (_OPERATIONS,) * 5,
        lambda first, others: {"layers": [first, *others]},
        _OPERATIONS,
    ),
    "autoformer-nano-28": Pairs(
        "fashion-mnist",
        (_HEADS, _RATIOS) * 3,
        _slices,
        tuple({"heads": heads, "ratio": ratio} for heads in _HEADS for ratio in _RATIOS),
    ),
}


def gradient(network: SuperNetwork, card: Card, batch: Batch, loss: Any) -> torch.Tensor:
    """Give the gradient of the first layer for one design, as one vector."""
    network.zero_grad(set_to_none=True)
    loss(network.answer(card, *inputs_of(batch)), batch).backward()
    named = [one for name, one in network.model.named_parameters() if ".layers.0." in name]
    return torch.cat([tensor.grad.flatten() for tensor in named if tensor.grad is not None])


def measured(name: str, arm: Arm, data: Path, seed: int, out: Path) -> Row:
    """Train a super-network, and compare gradients."""
    pairs, space = SPACES[name], load_space(name)
    task = TaskChoice(pairs.task, data=str(data / pairs.task) if pairs.task == "fashion-mnist" else None)
    stage = TrainShared(name, task, arm.rule, arm.lesson, arm.steps, training=_USUAL, seed=seed)
    done = run(Pipeline(stage), out, workers=1).run
    shared: SharedWeights = done.artifact(done.pipeline.stages[-1])
    network = SuperNetwork(shared.library or shared.model, lambda *_: [])
    recipe = _USUAL.make().recipe
    stream, loss = task_stream(shared.prepared, recipe), loss_of(shared.prepared.task.kind)
    found = {}
    for differing in range(1, len(pairs.choices) + 1):
        rng, cosines = derive(seed, "pairs", differing), []
        for number in range(PAIRS):
            batch = stream.batch(STEPS + number)
            cards = [space.card(space.from_json(one)) for one in pairs.draw(rng, differing)]
            one, other = (gradient(network, card, batch, loss) for card in cards)
            cosines.append(float(torch.nn.functional.cosine_similarity(one, other, dim=0)))
        found[str(differing)] = cosines
    return found


def work(units: Units, data: Path, seeds: int) -> None:
    for seed in range(seeds):
        for name in SPACES:
            for rule, arm in RULES.items():
                unit = f"{name}, {rule}-{seed}"
                out = units.folder / "runs" / unit.replace(", ", "-").replace(" ", "-")
                with threads(1):
                    units.kept(
                        unit,
                        lambda name=name, arm=arm, seed=seed, out=out: measured(name, arm, data, seed, out),  # type: ignore[misc]
                    )


def figures(units: Units, seeds: int) -> Row:
    found: Row = {"seeds": seeds, "cosines": {}}
    for name in SPACES:
        for rule in RULES:
            keys = (f"{name}, {rule}-{seed}" for seed in range(seeds))
            rows = [units.rows[key] for key in keys if key in units.rows]
            if len(rows) > 1:
                found["cosines"][f"{name}, {rule}"] = {
                    differing: over_seeds([sum(row[differing]) / len(row[differing]) for row in rows])
                    for differing in rows[0]
                }
    return found


def page(found: Row) -> str:
    most = max((len(one) for one in found["cosines"].values()), default=0)
    columns = ("super-network", *(str(number) for number in range(1, most + 1)))
    rows = [(name, *map(shown, one.values()), *[""] * (most - len(one))) for name, one in found["cosines"].items()]
    return f"{table(columns, rows)}\n\nCosine by the number of choices that differ; {found['seeds']} seeds."
