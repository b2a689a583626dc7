"""What a search with shared weights finds, against random designs of its size and against designs made by hand.

Settings, fixed before the first result of these seeds:

- Every recipe runs without its delivery, with 1,000 steps of the super-network and 60 trials (a population of 15 where
  the recipe has a fixed one), within a limit of parameters halfway between the smallest and the largest design. Seeds
  from 6 on: recipes and settings were changed with the results of seeds 0 to 5 in sight.
- The winner on validation rows is judged on test rows with its shared weights, as it is. Controls, with the same
  weights and rows: the mean of ten random designs with as many parameters as the winner, within 5 %; and the best on
  validation rows of at most twenty designs made by hand within the limit, the largest ones: all layers alike, as people
  scale them; for `supershaper` layers that never get narrower, as the authors' shapes do not; for chains two operations
  of the menu in turn. `fast-bert-search` runs a second time with its whole menu.
- Differences are so that more is better. Intervals of 95 % are those of Student's t over the seeds. They hold for these
  test rows: others would add to them, most for the 300 of `digits` and of `fsdd`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement, product
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
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.tasks.metrics import metric
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.judge import judge
from super_networks_kit.units import Row, Units, over_seeds, shown, table

CONTROLS, BY_HAND, NEAR, FIRST_SEED = 10, 20, 0.05, 6
_DRAWN = 400


@dataclass(frozen=True)
class Case:
    """A recipe, the task and space that it runs on, how designs are made by hand, and options of its stages."""

    recipe: str
    task: str
    space: str
    by_hand: Callable[[Space], Iterator[Any]]
    data: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """Return the parameters that a design may have: halfway between the smallest and the largest one."""
        hull = find_hull(load_space(self.space))
        return (params(hull.smallest) + params(hull.largest)) // 2


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


def widening(space: Space) -> Iterator[Any]:
    """List shapes whose layers never get narrower."""
    widths = dict(space.root.fields)["widths"].part.options  # type: ignore[attr-defined]
    layers = len(next(iter(space.enumerate())).widths)
    for shape in combinations_with_replacement(sorted(widths), layers):
        yield {"widths": list(shape)}


def in_turn(space: Space) -> Iterator[Any]:
    """List the chains in which two operations take turns, as attention and feed-forward do in BERT."""
    operations = dict(space.root.fields)["layers"].part.options  # type: ignore[attr-defined]
    layers = len(next(iter(space.enumerate())).layers)
    for pair in product(operations, repeat=2):
        yield {"layers": [pair[place % 2] for place in range(layers)]}


_SST2, _DIGITS = "mini-glue/sst2", ("digits", "autoformer-nano")
CASES = {
    "autoformer": Case("autoformer", *_DIGITS, alike, settings={"search.searcher.population": 15}),
    "spos": Case("spos", *_DIGITS, alike),
    "ofa": Case("ofa", *_DIGITS, alike),
    "linas": Case("linas", *_DIGITS, alike),
    "supershaper": Case("supershaper", _SST2, "supershaper-nano", widening),
    "autotinybert": Case("autotinybert", _SST2, "autotinybert-nano", partial(scaled_bert, free="heads")),
    "autotinybert-kd": Case("autotinybert-kd", _SST2, "autotinybert-kd-nano", partial(scaled_bert, free="qkv")),
    "lighthubert": Case("lighthubert", "fsdd", "lighthubert-nano", alike, data="fsdd"),
    "magic": Case("magic", _SST2, "magic-nano", in_turn),
    "fast-bert-search": Case("fast-bert-search", _SST2, "fast-bert-nano", in_turn),
    "fast-bert-search, whole menu": Case(
        "fast-bert-search", _SST2, "fast-bert-nano", in_turn, settings={"menu.keep": 1.0}
    ),
    "hat": Case("hat", "translation", "hat-nano", alike),
}


def searched(name: str, case: Case, seed: int, data: Path, out: Path, steps: int, trials: int) -> Row:
    """Run a recipe without its delivery, and judge the winner and its controls on test rows."""
    choice = TaskChoice(case.task, data=str(data / case.data) if case.data else None)
    made = RECIPES.get(case.recipe)(choice, steps=steps, trials=trials, seed=seed)
    result = run(
        Pipeline(*made.stages[:-1], recipe=case.recipe),
        out / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}",
        settings={"search.limits": [f"params<={case.most}"], **case.settings},
        workers=1,
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
    largest = find_hull(space).largest
    return {
        "design": winner.to_json(),
        "params": params(winner),
        "winner": score(winner, held_out),
        "random": [score(card, held_out) for card in like(space, winner, seed)],
        "by hand": score(best_hand, held_out),
        "by hand design": best_hand.to_json(),
        "by hand params": params(best_hand),
        "by hand tried": len(hand),
        "largest": params(largest),
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
            return list(found.values())
    raise RuntimeError(f"only {len(found)} designs of about {size} parameters were drawn")


def made_by_hand(space: Space, case: Case) -> list[Card]:
    """List the largest designs made by hand within the limit."""
    cards = {card.digest: card for card in (space.card(space.from_json(one)) for one in case.by_hand(space))}
    return sorted((card for card in cards.values() if params(card) <= case.most), key=params)[-BY_HAND:]


def work(units: Units, data: Path, seeds: int, steps: int, trials: int, only: list[str]) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name in only or CASES:
            units.kept(
                f"found-{name}-{seed}",
                lambda name=name, seed=seed: searched(  # type: ignore[misc]
                    name, CASES[name], seed, data, units.folder / "runs", steps, trials
                ),
            )


def figures(units: Units, seeds: int) -> Row:
    found: Row = {}
    for name in CASES:
        keys = (f"found-{name}-{seed}" for seed in range(FIRST_SEED, FIRST_SEED + seeds))
        rows = [units.rows[key] for key in keys if key in units.rows]
        if len(rows) > 1:
            found[name] = {
                "seeds": len(rows),
                "winner": float(np.mean([one["winner"] for one in rows])),
                "random": float(np.mean([np.mean(one["random"]) for one in rows])),
                "by hand": float(np.mean([one["by hand"] for one in rows])),
                "more than random": over_seeds([one["winner"] - np.mean(one["random"]) for one in rows]),
                "more than by hand": over_seeds([one["winner"] - one["by hand"] for one in rows]),
                "params": [one["params"] for one in rows],
                "by hand params": [one["by hand params"] for one in rows],
                "by hand tried": [one["by hand tried"] for one in rows],
            }
    return found


def page(found: Row) -> str:
    columns = ("recipe", "task", "parameters at most", "found", "random, same size", "gain", "best by hand", "gain")
    rows = [
        (
            name,
            CASES[name].task,
            f"{CASES[name].most:,}",
            f"{one['winner']:.3f}",
            f"{one['random']:.3f}",
            shown(one["more than random"], 3),
            f"{one['by hand']:.3f}",
            shown(one["more than by hand"], 3),
        )
        for name, one in found.items()
    ]
    return table(columns, rows) + f"\n\n{max((one['seeds'] for one in found.values()), default=0)} seeds."
