"""What scores with shared weights are worth: SPOS and OFA on the builtin digits.

Settings, fixed before the first result:

- The space is `autoformer-nano`, the task `digits` (1,197 training, 300 validation and 300 test rows). The recipes
  `spos` (2,000 steps) and `ofa` (1,000 steps of the largest design, 2,000 of the shrinking) run with 60 trials each
  under the limit params<=10000, with seeds 0, 1 and 2. They differ in processor time and are not compared.
- Ranking: 20 designs, each choice drawn uniformly, are trained alone for 400 steps with three seeds. The truth is the
  mean accuracy on test rows. Kendall's tau (b) is that of the accuracy with shared weights on validation rows, which is
  what a search sees, the mean over the seeds of the super-network. Control: tau of the number of parameters. Intervals
  resample the designs; that of the difference is paired.
- Search: the best trial of each seed against five random designs with as many parameters as it, within 10 %. For SPOS
  all are trained alone for 400 steps with the seed of the run; for OFA all are read out of the same shared weights as
  they are. The figure is the mean difference of accuracy on test rows. Its interval resamples seeds, control designs
  and rows.
- All intervals are of 95 %, by 2,000 resamples.

Run `python benchmarks/shared_weights.py [--out DIR] [--json FILE] [--seeds N] [--designs N]`. What is finished is kept
in the folder, so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from formwright.api import run
from formwright.arch.card import Card
from formwright.core.files import write_whole
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.shared import SharedWeights
from formwright.nn.task_model import TaskModel
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.recipes import RECIPES
from formwright.space.zoo import load_space
from formwright.tasks import load_task
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.fit import fit, fresh_model
from formwright.train.judge import answers, judge, truths
from formwright.train.prepare import Prepared, prepare

Row = dict[str, Any]
SPACE, TASK = load_space("autoformer-nano"), load_task("digits")
METHODS = ("spos", "ofa")
LIMIT, STEPS, ALONE, TRIALS, CONTROLS = "params<=10000", 2_000, 400, 60, 5
RESAMPLES, LEVEL = 2_000, 0.95


def drawn(number: int) -> list[Card]:
    """Draw the designs that are ranked."""
    rng = derive(0, "ranked")
    found: dict[str, Card] = {}
    while len(found) < number:
        card = SPACE.card(SPACE.sample(rng, "gene"))
        found.setdefault(card.digest, card)
    return list(found.values())


def like(winner: Card, number: int, seed: int) -> list[Card]:
    """Draw other designs with as many parameters as the winner, within 10 %."""
    rng, size = derive(seed, "controls"), params(winner)
    found: dict[str, Card] = {}
    while len(found) < number:
        card = SPACE.card(SPACE.sample(rng, "gene"))
        if card != winner and abs(params(card) / size - 1) <= 0.1:
            found.setdefault(card.digest, card)
    return list(found.values())


def trained_alone(card: Card, seed: int) -> TaskModel:
    """Train a design from fresh weights."""
    prepared = prepare(TASK, card, 0)
    training = TrainingChoice(steps=ALONE, device="cpu", length=1).make()
    training = replace(training, recipe=replace(training.recipe, seed=seed))
    return fit(fresh_model(card, prepared, training), prepared, training).model


def right(model: TaskModel, prepared: Prepared) -> list[int]:
    """Tell for each test row whether a model answers it correctly."""
    part = prepared.part(open_test(TASK))
    with threads(1):
        return (answers([model], prepared, part, np.arange(len(part.examples)))[0] == truths(part)).astype(int).tolist()


def alone(card: Card, seed: int) -> Row:
    """Train a design alone, and answer the test rows."""
    return {"params": params(card), "right": right(trained_alone(card, seed), prepare(TASK, card, 0))}


def searched(method: str, seed: int, out: Path, designs: Sequence[Card]) -> Row:
    """Run a recipe without its delivery, judge the designs that are ranked, the winner and its controls."""
    made = RECIPES.get(method)(TaskChoice("digits"), limits=(LIMIT,), steps=STEPS, trials=TRIALS, seed=seed)
    result = run(Pipeline(*made.stages[:-1], recipe=method), out / f"{method}-{seed}")
    (search,) = result.run.pipeline.of_kind(Search)
    network: SharedWeights = result.run.artifact(search.evaluator.weights)  # type: ignore[union-attr]
    best = result.best_trial
    assert best is not None
    assert isinstance(best.request.card, Card)
    test = _tester(method, network, seed)
    controls = like(best.request.card, CONTROLS, seed)
    return {
        "shared": [_validated(network, card) for card in designs],
        "validation": best.observation.metrics["accuracy"],  # type: ignore[union-attr]
        "winner": {"params": params(best.request.card), "right": test(best.request.card)},
        "controls": [{"params": params(card), "right": test(card)} for card in controls],
    }


def _validated(network: SharedWeights, card: Card) -> float:
    with threads(1):
        return judge(network.extracted(card), network.prepared, network.prepared.validation)["accuracy"]


def _tester(method: str, network: SharedWeights, seed: int) -> Callable[[Card], list[int]]:
    """Say how a method delivers: trained from scratch, or as it is."""
    if method == "spos":
        return lambda card: right(trained_alone(card, seed), prepare(TASK, card, 0))
    return lambda card: right(network.extracted(card), network.prepared)


def ranking(rows: dict[str, Row], method: str, designs: int, seeds: int) -> Row:
    """Compare the order by shared weights, and by size, with that of designs trained alone."""
    alone = np.array(
        [[np.mean(rows[f"alone-{design}-{seed}"]["right"]) for seed in range(seeds)] for design in range(designs)]
    )
    truth = alone.mean(1)
    size = np.array([rows[f"alone-{design}-0"]["params"] for design in range(designs)])
    shared = [np.array(rows[f"{method}-{seed}"]["shared"]) for seed in range(seeds)]

    def taus(some: NDArray[np.int64]) -> tuple[float, float]:
        by_size = tau(size[some], truth[some])
        return float(np.mean([tau(one[some], truth[some]) for one in shared])), by_size

    rng = derive(0, "bootstrap", method)
    sample = np.array([taus(rng.integers(designs, size=designs)) for _ in range(RESAMPLES)])
    found = taus(np.arange(designs))
    return {
        "tau": [found[0], *interval(sample[:, 0])],
        "tau of size": [found[1], *interval(sample[:, 1])],
        "difference": [found[0] - found[1], *interval(sample[:, 0] - sample[:, 1])],
        "each seed": [tau(one, truth) for one in shared],
        "between seeds alone": float(np.mean([tau(alone[:, a], alone[:, b]) for a in range(seeds) for b in range(a)])),
        "mean accuracy": {"shared": float(np.mean(shared)), "alone": float(truth.mean())},
    }


def tau(one: Any, other: Any) -> float:
    """Give Kendall's tau (b); 0 where one side does not differ at all."""
    found = float(kendalltau(one, other).statistic)
    return 0.0 if np.isnan(found) else found


def search_gain(rows: dict[str, Row], method: str, seeds: int) -> Row:
    """Compare the winners with random designs of their size."""
    runs = [rows[f"{method}-{seed}"] for seed in range(seeds)]
    winners = np.array([one["winner"]["right"] for one in runs], float)  # (seeds, rows)
    controls = np.array([[each["right"] for each in one["controls"]] for one in runs], float)  # (seeds, designs, rows)
    rng, sample = derive(0, "bootstrap of gains", method), []
    many, number = controls.shape[1:]
    for _ in range(RESAMPLES):
        some, seen = rng.integers(seeds, size=seeds), rng.integers(number, size=number)
        others = [controls[seed][rng.integers(many, size=many)][:, seen].mean() for seed in some]
        sample.append(float(winners[some][:, seen].mean() - np.mean(others)))
    return {
        "winner": float(winners.mean()),
        "random": float(controls.mean()),
        "gain": [float(winners.mean() - controls.mean()), *interval(np.array(sample))],
        "each seed": [float(one.mean() - other.mean()) for one, other in zip(winners, controls, strict=True)],
        "params": [one["winner"]["params"] for one in runs],
    }


def interval(sample: NDArray[np.float64]) -> list[float]:
    """Give the interval of a bootstrap."""
    return [float(end) for end in np.quantile(sample, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))]


def kept(out: Path, name: str, make: Callable[[], Row]) -> Row:
    """Read a finished piece, or make and keep it."""
    path = out / f"{name}.json"
    if not path.is_file():
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(make()))
        print(f"{name} is done", flush=True)
    found: Row = json.loads(path.read_text(encoding="utf-8"))
    return found


def show(figures: Row) -> None:
    def with_ends(found: Sequence[float]) -> str:
        return f"{found[0]:+.3f} [{found[1]:+.3f}, {found[2]:+.3f}]"

    print("method | tau of shared weights | tau of size | difference | gain over random designs of the same size")
    for method, found in figures.items():
        one, other = found["ranking"], found["search"]
        columns = (one["tau"], one["tau of size"], one["difference"], other["gain"])
        print(" | ".join((method, *map(with_ends, columns))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("shared_weights"), help="where finished pieces are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--designs", type=int, default=20)
    arguments = parser.parse_args()
    designs, out, rows = drawn(arguments.designs), arguments.out, dict[str, Row]()
    for seed in range(arguments.seeds):
        for method in METHODS:
            name = f"{method}-{seed}"
            rows[name] = kept(out, name, lambda method=method, seed=seed: searched(method, seed, out / "runs", designs))
        for number, card in enumerate(designs):
            name = f"alone-{number}-{seed}"
            rows[name] = kept(out, name, lambda card=card, seed=seed: alone(card, seed))
    figures = {
        method: {
            "ranking": ranking(rows, method, len(designs), arguments.seeds),
            "search": search_gain(rows, method, arguments.seeds),
        }
        for method in METHODS
    }
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
