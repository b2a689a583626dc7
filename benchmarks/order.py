"""Does the order of heads and channels matter inside a vision transformer and a translator?

Settings, fixed before the first result:

- A vision transformer on Fashion-MNIST (20,000 training rows, judged on 3,000 validation rows) and a translator on
  Multi30k (29,000 pairs, judged on 1,014). Both are trained from scratch, with seeds 0, 1 and 2, and teach afterwards.
- Sub-networks at 25, 40, 55, 70 and 85 % of the model's multiply-accumulates, by EFTNAS's Algorithm 1 on first-order
  scores of training batches. Three arms cut the same sizes and differ in the order of heads and channels:
  `first-order`, `l1` (mean size of weights) and `none` (as the training left them). Controls that need no scores:
  `uniform` (the same share of heads and channels in all layers, no order) and `fewer-layers` (the first ones, whole).
- Each arm is judged before and after its super-network is trained: the same number of steps, the sandwich rule,
  distillation from the teacher. Nothing is chosen by the validation rows.
- The figure is the hypervolume of the front of (share of MACs, score) from the worst point: all MACs, and the score of
  chance (pictures: accuracy 0.1; translation: the loss of token frequencies). The score of a translator is minus its
  loss in nats for a token. Intervals are of 95 %, by 2,000 resamples of seeds and rows; differences are paired.

Run `python benchmarks/order.py --data DIR [--out DIR] [--json FILE] [--tasks ...] [--seeds N]`. Finished units are kept
in the folder, so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.files import write_whole
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.nn.task_model import TaskModel
from formwright.pipeline.score_parts import BALANCE
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.search.scores import hypervolume
from formwright.space import Choice, Record, Space
from formwright.space.elastic_parts import LayerSizes, layers_of, scored_parts, stacks_of, with_stacks
from formwright.supernet.automatic import MULTIPLE, Thresholds, sub_network
from formwright.supernet.hull import Hull
from formwright.supernet.importance import Importance, balanced, first_order, magnitude
from formwright.supernet.lessons import Distil
from formwright.supernet.network import StepTrackingStream, SuperNetwork, copy_of_teacher
from formwright.supernet.rules import Sandwich
from formwright.train.device import threads
from formwright.train.fit import fresh_model, task_stream
from formwright.train.judge import judged
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared, prepare

Row = dict[str, Any]
SHARES = (0.25, 0.40, 0.55, 0.70, 0.85)
ORDERS = ("first-order", "l1", "none")
ARMS = (*ORDERS, "uniform", "fewer-layers")
BATCHES, RESAMPLES, LEVEL = 32, 2_000, 0.95


@dataclass(frozen=True)
class Setting:
    """A task, the design that is trained for it, and how long."""

    task: str
    card: Card
    length: int
    rows: int | None
    judged: int
    steps: int  # of the teacher
    shared: int  # of the super-network
    batch: int
    rate: float


def _translator() -> Card:
    table = TokenEmbedding(2_000, 64, length=32)
    below = Block(64, Attention(4, 16), (256,), "relu", "pre")
    above = replace(below, cross=CrossAttention(4, 16))
    encoder, decoder = Stack(table, (below,) * 3, final_norm=True), Stack(table, (above,) * 3, True, final_norm=True)
    return Card(encoder, decoder, share_embedding=True)


_VIT = Card(
    encoder=Stack(
        PatchEmbedding(28, 7, 64, channels=1), (Block(64, Attention(4, 16), (256,), norm="pre"),) * 4, final_norm=True
    )
)
SETTINGS = {
    "fashion-mnist": Setting("fashion-mnist", _VIT, 1, 20_000, 3_000, 800, 250, 64, 1e-3),
    "multi30k": Setting("multi30k", _translator(), 24, None, 1_014, 1_000, 250, 32, 2e-3),
}


@dataclass
class Bench:
    """One setting with one seed: the task as it is read, and the trained teacher."""

    setting: Setting
    seed: int
    prepared: Prepared
    teacher: TaskModel

    @classmethod
    def begun(cls, setting: Setting, seed: int, data: Path, out: Path) -> Bench:
        task = TaskChoice(setting.task, str(data / setting.task), rows=setting.rows).load()
        prepared = prepare(task, setting.card, setting.length)
        prepared = replace(prepared, task=replace(task, metrics=task.metrics[:1]))
        training = TrainingChoice(
            setting.steps, setting.batch, setting.rate, 0.1, "cosine", device="cpu", length=1
        ).make()
        training = replace(training, recipe=replace(training.recipe, seed=seed))
        teacher = fresh_model(setting.card, prepared, training)
        path = out / f"{setting.task}-{seed}.safetensors"
        if path.is_file():
            teacher.load_state_dict(load_file(path), strict=False)
        else:
            train(teacher, task_stream(prepared, training.recipe), loss_of(task.kind), training.recipe)
            save_file({name: weight.detach() for name, weight in teacher.named_parameters()}, path)
        return cls(setting, seed, prepared, teacher.eval())

    @property
    def card(self) -> Card:
        return self.setting.card

    def cost(self, card: Card) -> float:
        return float(macs(card, max(self.setting.length, 1)))

    def scores(self) -> Importance:
        recipe = TrainingChoice(1, self.setting.batch, device="cpu", length=1).make().recipe
        stream = task_stream(self.prepared, replace(recipe, seed=self.seed))
        batches = (stream.batch(step) for step in range(BATCHES))
        return balanced(first_order(self.teacher, batches, loss_of(self.prepared.task.kind)), BALANCE)

    def arm(self, name: str) -> tuple[Importance | None, list[Card]]:
        """Give the order of an arm and its sub-networks, the smallest first."""
        full = self.cost(self.card)
        if name == "fewer-layers":
            return None, nearest(fewer_layers(self.card), self.cost, full)
        if name == "uniform":
            return None, nearest(uniform_widths(self.card), self.cost, full)
        scores = self.scores()
        met = [Thresholds(self.card, scores, self.cost).nearest(share * full) for share in SHARES]
        weights = dict(self.teacher.named_parameters())
        order = {"first-order": scores, "none": None}.get(name, magnitude(weights, self.card, self.teacher.spec))
        return order, [sub_network(self.card, one.widths) for one in met]

    def judge(self, network: SuperNetwork, cards: Sequence[Card]) -> list[Any]:
        """Judge sub-networks; give what each validation row contributes to the score."""
        part = self.prepared.validation
        found = [judged(network.extracted(card), self.prepared, part) for card in cards]
        tables = [one.tables[self.prepared.task.metric] for one in found]
        return [np.round(table[: self.setting.judged], 5).tolist() for table in tables]

    def trained(self, order: Importance | None, cards: Sequence[Card]) -> Row:
        designs = [*cards, self.card]
        space = Space("cut", Record.of(which=Choice(tuple(range(len(designs))))), lambda one: designs[one.which])
        draw = Sandwich(1).bind(Hull(space, self.card, cards[0]), self.setting.shared)
        network = SuperNetwork(copy_of_teacher(self.teacher, order), draw, self.teacher)
        before = self.judge(network, cards)
        choice = TrainingChoice(self.setting.shared, self.setting.batch, self.setting.rate / 2, 0.1, "cosine", length=1)
        recipe = replace(choice.make().recipe, seed=self.seed)
        stream = StepTrackingStream(task_stream(self.prepared, recipe), network)
        train(network, stream, Distil(0.5, 2.0).bind(self.prepared.task.kind), recipe)
        shares = [self.cost(card) / self.cost(self.card) for card in cards]
        return {"shares": shares, "before": before, "after": self.judge(network.eval(), cards)}


def uniform_widths(card: Card) -> list[Card]:
    """List the designs whose layers all keep one share of their heads, and about the same one of their channels."""
    parts = {part.option: part.most for layer in layers_of(card) for part in scored_parts(layer)}
    found = []
    for heads in range(1, parts["heads"] + 1):
        for channels in range(MULTIPLE, parts["feed_forward"] + 1, MULTIPLE):
            if abs(channels / parts["feed_forward"] - heads / parts["heads"]) <= 0.5 / parts["heads"]:
                sizes: LayerSizes = tuple(
                    tuple(channels if part.option == "feed_forward" else heads for part in scored_parts(layer))
                    for layer in layers_of(card)
                )
                found.append(sub_network(card, sizes))
    return found


def fewer_layers(card: Card) -> list[Card]:
    """List the designs with the first layers of each stack."""
    stacks = stacks_of(card)
    depths = product(*(range(1, len(stack.layers) + 1) for stack in stacks.values()))
    return [
        with_stacks(
            card,
            {
                key: replace(one, layers=one.layers[:many])
                for (key, one), many in zip(stacks.items(), depth, strict=True)
            },
        )
        for depth in depths
    ]


def nearest(cards: Sequence[Card], cost: Callable[[Card], float], full: float) -> list[Card]:
    """Pick for each share the design whose cost is nearest."""
    return [min(cards, key=lambda card: abs(cost(card) - share * full)) for share in SHARES]


# --- figures ----------------------------------------------------------------------------------------------------------


def score(setting: str, table: NDArray[np.float64]) -> float:
    """Give the score of rows that contribute their hits, or their losses and tokens."""
    if setting == "fashion-mnist":
        return float(table[:, 0].mean())
    return -float((table[:, 0] * table[:, 1]).sum() / table[:, 1].sum())


def volume(setting: str, unit: Row, when: str, rows: NDArray[np.int64], chance: float) -> float:
    points = [
        (share, score(setting, np.asarray(table)[rows]))
        for share, table in zip(unit["shares"], unit[when], strict=True)
    ]
    return hypervolume(points, (1.0, chance), ("min", "max"))


def figures(
    setting: str, units: dict[tuple[str, int], Row], seeds: int, chance: float, resamples: int = RESAMPLES
) -> Row:
    """Give the hypervolume of each arm before and after training, and how far it is ahead of no order."""
    number = len(units[ARMS[0], 0]["before"][0])
    tables = {key: {**one, **{when: np.array(one[when]) for when in ("before", "after")}} for key, one in units.items()}
    rng, everything = derive(0, "order", setting), np.arange(number)
    draws = [(rng.integers(seeds, size=seeds), rng.integers(number, size=number)) for _ in range(resamples)]
    found: Row = {}
    for when in ("before", "after"):
        exact = {
            arm: [volume(setting, tables[arm, seed], when, everything, chance) for seed in range(seeds)] for arm in ARMS
        }
        sampled = {
            arm: np.array(
                [
                    np.mean([volume(setting, tables[arm, seed], when, rows, chance) for seed in chosen])
                    for chosen, rows in draws
                ]
            )
            for arm in ARMS
        }
        for arm in ARMS:
            ahead = sampled[arm] - sampled["none"]
            found.setdefault(arm, {})[when] = {
                "hypervolume": [float(np.mean(exact[arm])), *interval(sampled[arm])],
                "ahead of none": [float(np.mean(exact[arm]) - np.mean(exact["none"])), *interval(ahead)],
                "each seed": exact[arm],
            }
    for arm in ARMS:
        for when in ("before", "after"):
            found[arm][when]["scores"] = np.mean(
                [[score(setting, table) for table in tables[arm, seed][when]] for seed in range(seeds)], 0
            ).tolist()
        found[arm]["shares"] = np.mean([units[arm, seed]["shares"] for seed in range(seeds)], 0).tolist()
    return found


def interval(sample: NDArray[np.float64]) -> list[float]:
    """Give the interval of a bootstrap."""
    return [float(end) for end in np.quantile(sample, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))]


def baseline(setting: str, prepared: Prepared) -> float:
    """Give the score of an answer that ignores the input."""
    if setting == "fashion-mnist":
        return 1 / len(prepared.task.labels)
    labels = np.concatenate([row[1:] for row in prepared.train.examples.targets])  # type: ignore[union-attr]
    share = np.bincount(labels) / len(labels)
    return float((share[share > 0] * np.log(share[share > 0])).sum())


def show(setting: str, found: Row) -> None:
    def with_ends(one: Sequence[float]) -> str:
        return f"{one[0]:+.4f} [{one[1]:+.4f}, {one[2]:+.4f}]"

    print(f"{setting}\narm | before: hypervolume | ahead of none | after: hypervolume | ahead of none")
    for arm, one in found.items():
        cells = [one[when][name] for when in ("before", "after") for name in ("hypervolume", "ahead of none")]
        print(" | ".join((arm, *map(with_ends, cells))))
        print(f"  shares {np.round(one['shares'], 3).tolist()}")
        for when in ("before", "after"):
            print(f"  {when} {np.round(one[when]['scores'], 3).tolist()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with fashion-mnist and multi30k")
    parser.add_argument("--out", type=Path, default=Path("order"), help="where finished units are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--tasks", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    found: Row = {}
    with threads(1):
        for seed, name in product(range(arguments.seeds), arguments.tasks):
            measure(name, seed, arguments.data, arguments.out)
    for name in arguments.tasks:
        units, chance = {}, read(arguments.out / f"{name}-0-chance.json")["score"]
        for seed, arm in product(range(arguments.seeds), ARMS):
            units[arm, seed] = read(arguments.out / f"{name}-{seed}-{arm}.json")
        found[name] = figures(name, units, arguments.seeds, chance)
        show(name, found[name])
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def measure(name: str, seed: int, data: Path, out: Path) -> None:
    """Make the units of a task and a seed that are not there yet."""
    missing = [arm for arm in ("chance", *ARMS) if not (out / f"{name}-{seed}-{arm}.json").is_file()]
    if not missing:
        return
    bench = Bench.begun(SETTINGS[name], seed, data, out)
    for arm in missing:
        row = {"score": baseline(name, bench.prepared)} if arm == "chance" else bench.trained(*bench.arm(arm))
        write_whole(out / f"{name}-{seed}-{arm}.json", json.dumps(row))
        print(f"{name}, seed {seed}, {arm} is done", flush=True)


def read(path: Path) -> Row:
    found: Row = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
