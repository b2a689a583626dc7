"""What a search with shared weights finds, against random designs of its size and against designs made by hand.

Settings, fixed before the first result:

- Every recipe runs without its delivery, with 1,000 steps of the super-network, 60 trials and seeds 0, 1 and 2, within
  a limit of about half of the largest design's parameters.
- The winner on validation rows is judged on test rows with its shared weights, as it is. Controls, with the same
  weights and rows: the mean of ten random designs with as many parameters as the winner, within 5 %; and the best on
  validation rows of at most twenty designs made by hand within the limit, the largest ones: all layers alike, as people
  scale them, and for chains attention and feed-forward in turn.
- Differences are so that more is better. Intervals of 95 % resample seeds, and for the first control random designs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from formwright.api import run
from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES
from formwright.space.space import Space
from formwright.tasks.metrics import metric
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.judge import judge
from super_networks_kit.units import RESAMPLES, Row, Units, interval, shown, table

CONTROLS, BY_HAND, NEAR = 10, 20, 0.05
_DRAWN = 400


@dataclass(frozen=True)
class Case:
    """A recipe, the task and space that it runs on, its limit, and how designs are made by hand."""

    task: str
    space: str
    limit: str
    by_hand: Callable[[Space], Iterator[Any]]
    data: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def alike(space: Space) -> Iterator[Any]:
    """Draw designs whose layers are all alike, as JSON."""
    rng = derive(0, "by hand")
    for _ in range(_DRAWN):
        yield _alike(space.to_json(space.sample(rng, "gene")))


def _alike(design: Any) -> Any:
    if isinstance(design, list):
        return design[:1] * len(design)
    return {name: _alike(one) for name, one in design.items()} if isinstance(design, dict) else design


def scaled_bert(space: Space, free: str) -> Iterator[Any]:
    """List BERTs as they are scaled: heads of 16 as many as fit, the feed-forward layer four times as wide."""
    for layers, hidden in product(range(1, 5), range(32, 129, 16)):
        heads = min(hidden // 16, 4)
        yield {
            "layers": layers,
            "hidden": hidden,
            free: heads if free == "heads" else 16 * heads,
            "feed_forward": 4 * hidden,
        }


def in_turn(space: Space) -> Iterator[Any]:
    """List the chains of BERT: attention and feed-forward in turn, of every size."""
    operations = dict(space.root.fields)["layers"].part.options  # type: ignore[attr-defined]
    layers = len(next(iter(space.enumerate())).layers)
    kinds = [[one for one in operations if one.startswith(kind)] for kind in ("attention", "feed-forward")]
    for pair in product(*kinds):
        yield {"layers": [pair[place % 2] for place in range(layers)]}


CASES = {
    "autoformer": Case("digits", "autoformer-nano", "params<=16000", alike),
    "supershaper": Case("mini-glue/sst2", "supershaper-nano", "params<=300000", alike),
    "autotinybert": Case("mini-glue/sst2", "autotinybert-nano", "params<=400000", partial(scaled_bert, free="heads")),
    "autotinybert-kd": Case(
        "mini-glue/sst2", "autotinybert-kd-nano", "params<=400000", partial(scaled_bert, free="qkv")
    ),
    "lighthubert": Case("fsdd", "lighthubert-nano", "params<=100000", alike, data="fsdd"),
    "magic": Case("mini-glue/sst2", "magic-nano", "params<=215000", in_turn),
    "hat": Case("translation", "hat-nano", "params<=1200000", alike),
    "linas": Case("digits", "autoformer-nano", "params<=16000", alike),
    "fast-bert-search": Case("mini-glue/sst2", "fast-bert-nano", "params<=150000", in_turn),
}


def searched(name: str, case: Case, seed: int, data: Path, out: Path, steps: int, trials: int) -> Row:
    """Run a recipe without its delivery, and judge the winner and its controls on test rows."""
    choice = TaskChoice(case.task, data=str(data / case.data) if case.data else None)
    made = RECIPES.get(name)(choice, steps=steps, trials=trials, seed=seed, **case.options)
    result = run(
        Pipeline(*made.stages[:-1], recipe=name), out / f"{name}-{seed}", settings={"search.limits": [case.limit]}
    )
    (search,) = result.run.pipeline.of_kind(Search)
    network: SharedWeights = result.run.artifact(search.evaluator.weights)  # type: ignore[union-attr]
    best, space = result.best_trial, search.found_space(result.run.stage(search))  # which a profile may have drawn up
    task = network.prepared.task
    prepared = replace(network.prepared, task=replace(task, metrics=(task.metric,)))  # without translations to write
    assert best is not None
    winner = best.request.card
    assert isinstance(winner, Card)
    sign = 1 if metric(task.metric).direction == "max" else -1
    held_out = network.prepared.part(open_test(task))

    def score(card: Card, rows: Any) -> float:
        with threads(1):
            return sign * judge(network.extracted(card), prepared, rows)[task.metric]

    hand = made_by_hand(space, case)
    best_hand = max(hand, key=lambda card: score(card, network.prepared.validation))
    return {
        "params": params(winner),
        "winner": score(winner, held_out),
        "random": [score(card, held_out) for card in like(space, winner, seed)],
        "by hand": score(best_hand, held_out),
        "by hand params": params(best_hand),
    }


def like(space: Space, winner: Card, seed: int) -> list[Card]:
    """Draw other designs with as many parameters as the winner."""
    rng, size = derive(seed, "controls"), params(winner)
    found: dict[str, Card] = {}
    for _ in range(100_000):
        card = space.card(space.sample(rng, "gene"))
        if card != winner and abs(params(card) / size - 1) <= NEAR:
            found.setdefault(card.digest, card)
        if len(found) == CONTROLS:
            break
    return list(found.values())


def made_by_hand(space: Space, case: Case) -> list[Card]:
    """List the largest designs made by hand within the limit."""
    bound = float(case.limit.partition("<=")[2])
    cards = {card.digest: card for card in (space.card(space.from_json(one)) for one in case.by_hand(space))}
    return sorted((card for card in cards.values() if params(card) <= bound), key=params)[-BY_HAND:]


def work(units: Units, data: Path, seeds: int, steps: int, trials: int, only: list[str]) -> None:
    for seed in range(seeds):
        for name in only or [name for name in CASES if name in RECIPES.names()]:
            units.kept(
                f"found-{name}-{seed}",
                lambda name=name, seed=seed: searched(  # type: ignore[misc]
                    name, CASES[name], seed, data, units.folder / "runs", steps, trials
                ),
            )


def figures(units: Units, seeds: int) -> Row:
    found: Row = {}
    for name in CASES:
        rows = [units.rows[key] for seed in range(seeds) if (key := f"found-{name}-{seed}") in units.rows]
        if not rows:
            continue
        rng, samples = derive(0, "bootstrap", name), []
        for _ in range(RESAMPLES):
            some = [rows[index] for index in rng.integers(len(rows), size=len(rows))]
            random = [np.mean(rng.choice(one["random"], len(one["random"]))) for one in some]
            samples.append(
                np.mean(
                    [
                        [one["winner"] - mean, one["winner"] - one["by hand"]]
                        for one, mean in zip(some, random, strict=True)
                    ],
                    axis=0,
                )
            )
        gains = np.mean(
            [[one["winner"] - np.mean(one["random"]), one["winner"] - one["by hand"]] for one in rows], axis=0
        )
        ends = np.array(samples)
        found[name] = {
            "seeds": len(rows),
            "winner": float(np.mean([one["winner"] for one in rows])),
            "random": float(np.mean([np.mean(one["random"]) for one in rows])),
            "by hand": float(np.mean([one["by hand"] for one in rows])),
            "more than random": interval(float(gains[0]), ends[:, 0]),
            "more than by hand": interval(float(gains[1]), ends[:, 1]),
            "params": [one["params"] for one in rows],
        }
    return found


def page(found: Row) -> str:
    columns = ("recipe", "task, limit", "seeds", "found", "random, same size", "gain", "best by hand", "gain")
    rows = [
        (
            name,
            f"{CASES[name].task}, {CASES[name].limit}",
            str(one["seeds"]),
            f"{one['winner']:.3f}",
            f"{one['random']:.3f}",
            shown(one["more than random"], 3),
            f"{one['by hand']:.3f}",
            shown(one["more than by hand"], 3),
        )
        for name, one in found.items()
    ]
    return table(columns, rows)
