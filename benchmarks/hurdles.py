"""Do hurdles find better designs than short or full trainings alone? The toy experiment of So et al. (2019), repeated.

A design is a string of 100 bits, and its accuracy the share of ones plus noise. Training it in full costs 100 units and
shows that accuracy; a hundredth of the training costs one unit and shows a hundredth of it, plus noise that is as large
as what can be seen. A search has 10,000 units. Three searches: evolution by short trainings, by full trainings, and
with a hurdle that lets the better designs be trained in full. A search is as good as the best true accuracy in its last
population. The rules are those of the searcher `hurdles` (`search/tournaments.py`), run for all searches side by side;
a further row runs the searcher itself, design by design.

Full trainings pay for 100 designs only, and the population is of 100: that search never gets beyond its random start.

Run `python benchmarks/hurdles.py [--json FILE] [--runs N] [--searcher-runs N] [--seed N]`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import Budget, History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.rungs import (
    Hurdles,
    draw,
    evolution_state,
    height,
    progress_of,
)
from formwright.space import Choice, Fields, Record, Repeat, Space

Floats = NDArray[np.float64]

BITS = 100
NOISE, EARLY_NOISE = 0.01, 0.005
FULL = 100  # units of a full training; a short one takes one
UNITS = 10_000
POPULATION, TOURNAMENT = 100, 10
BEFORE = UNITS // FULL  # units spent when the hurdle is set: so about as many designs come before it as after it

PUBLISHED = {"plain, early": 0.60, "plain, full": 0.62, "hurdles": 0.64, "hurdles, the searcher": 0.64}


@dataclass
class Models:
    """Strings, one row of them for each search: their ones, their true accuracy and what a search sees of it."""

    ones: NDArray[np.int64]
    true: Floats
    seen: Floats

    @classmethod
    def of(cls, ones: NDArray[np.int64], rng: Generator) -> Models:
        """Train strings for a short time."""
        true = np.clip(ones / BITS + NOISE * rng.normal(size=ones.shape), 0, 1)
        return cls(ones, true, np.clip(true / FULL + EARLY_NOISE * rng.normal(size=ones.shape), 0, 1))

    def train(self, which: NDArray[np.bool_]) -> None:
        """Train some of the strings in full."""
        self.seen = np.where(which, self.true, self.seen)

    def mutants(self, rng: Generator) -> Models:
        """Flip one bit of the winner of a tournament in each row. Which of equal bits it is makes no difference."""
        rows = np.arange(len(self.ones))
        drawn = draw(rng, len(rows), POPULATION, TOURNAMENT)
        parents = self.ones[rows, drawn[rows, self.seen[rows[:, np.newaxis], drawn].argmax(axis=1)]]
        return Models.of(parents + np.where(BITS * rng.random(len(rows)) < parents, -1, 1), rng)

    def replace(self, children: Models, active: NDArray[np.bool_], rng: Generator) -> None:
        """Put each child in the place of the loser of another tournament, where the search still goes on."""
        rows = np.arange(len(self.ones))
        drawn = draw(rng, len(rows), POPULATION, TOURNAMENT)
        places = drawn[rows, self.seen[rows[:, np.newaxis], drawn].argmin(axis=1)]
        for mine, new in ((self.ones, children.ones), (self.true, children.true), (self.seen, children.seen)):
            mine[rows[active], places[active]] = new[active]


def plain_early(runs: int, rng: Generator) -> Floats:
    """Evolve by short trainings."""
    models = Models.of(rng.binomial(BITS, 0.5, (runs, POPULATION)), rng)
    for _ in range(UNITS - POPULATION):
        models.replace(models.mutants(rng), np.ones(runs, dtype=bool), rng)
    return models.true.max(axis=1)


def plain_full(runs: int, rng: Generator) -> Floats:
    """Evolve by full trainings."""
    models = Models.of(rng.binomial(BITS, 0.5, (runs, POPULATION)), rng)
    models.train(np.ones(models.ones.shape, dtype=bool))
    for _ in range(UNITS // FULL - POPULATION):
        children = models.mutants(rng)
        children.train(np.ones(runs, dtype=bool))
        models.replace(children, np.ones(runs, dtype=bool), rng)
    return models.true.max(axis=1)


def with_hurdles(runs: int, rng: Generator) -> Floats:
    """Evolve by short trainings until a hurdle is set; from then on train in full whoever is above it."""
    models = Models.of(rng.binomial(BITS, 0.5, (runs, POPULATION)), rng)
    spent, hurdle = np.full(runs, POPULATION), np.full(runs, np.inf)
    while (active := spent < UNITS).any():
        children = models.mutants(rng)
        above = children.seen > hurdle
        children.train(above)
        models.replace(children, active, rng)
        spent += np.where(active, np.where(above, FULL, 1), 0)
        hurdle = np.where(np.isinf(hurdle) & (spent >= BEFORE), height(models.seen), hurdle)
    return models.true.max(axis=1)


@dataclass(frozen=True)
class Bits:
    """Stand in for a card: a string of bits."""

    bits: tuple[int, ...]

    @property
    def digest(self) -> str:
        return sha256(bytes(self.bits)).hexdigest()

    def to_json(self) -> Any:
        return list(self.bits)


def _build(design: Fields) -> Any:
    return Bits(design.bits)


SPACE = Space("bits", Record.of(bits=Repeat(Choice((0, 1)), BITS)), _build)
SEARCHER = Hurdles(
    SPACE,
    (Objective.parse("accuracy:max"),),
    population=POPULATION,
    tournament=TOURNAMENT,
    batch=POPULATION + 1,  # a hundred units are spent after the random designs; the check comes after a child
    min_steps=1,
    max_steps=FULL,
    eta=FULL,
)


@dataclass
class Lab:
    """Train one string at a time; the noise of a string is drawn once."""

    rng: Generator
    models: dict[str, Models] = field(default_factory=dict)

    def observe(self, request: Request) -> Observation:
        """Return what a budget shows of a string."""
        assert isinstance(request.card, Bits)
        digest = request.card.digest
        if digest not in self.models:
            self.models[digest] = Models.of(np.array(sum(request.card.bits)), self.rng)
        model = self.models[digest]
        return Observation({"accuracy": float(model.seen if request.budget == Budget(1) else model.true)})


def searched(seed: int) -> float:
    """Let the searcher itself spend the units, and return the best true accuracy in its last population."""
    lab, trials, spent = Lab(derive(seed, "lab")), [], 0
    while True:
        request = SEARCHER.ask(History(tuple(trials)), derive(seed, "ask", len(trials)))
        if request.budget == Budget(1) and spent >= UNITS:
            break
        spent += 1 if request.budget == Budget(1) else FULL - 1
        trials.append(Trial(len(trials), request, "finished", lab.observe(request)))
    lives = progress_of(History(tuple(trials)), SEARCHER.rungs)
    now = evolution_state(lives, SEARCHER)
    alive = [lives[index].latest for index in now.alive]
    return max(float(lab.models[trial.request.card.digest].true) for trial in alive if trial is not None)


ARMS: dict[str, Callable[[int, Generator], Floats]] = {
    "plain, early": plain_early,
    "plain, full": plain_full,
    "hurdles": with_hurdles,
}


def figures(runs: int, searcher_runs: int, seed: int) -> dict[str, Any]:
    """Run every search several times; give means, spreads and the processor seconds they took."""
    found: dict[str, Any] = {}
    for name, arm in ARMS.items():
        began = time.process_time()
        found[name] = _facts(name, arm(runs, derive(seed, name)), time.process_time() - began)
    if searcher_runs:
        began = time.process_time()
        best = np.array([searched(seed + run) for run in range(searcher_runs)])
        name = "hurdles, the searcher"
        found[name] = _facts(name, best, time.process_time() - began)
    return found


def _facts(name: str, best: Floats, seconds: float) -> dict[str, Any]:
    published = PUBLISHED[name]
    return {
        "runs": len(best),
        "mean": float(best.mean()),
        "deviation": float(best.std()),
        "error_of_mean": float(best.std() / len(best) ** 0.5),
        "published": published,
        "difference": float(best.mean()) - published,
        "cpu_s": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--searcher-runs", type=int, default=50, help="searches by the searcher itself")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    found = figures(arguments.runs, arguments.searcher_runs, arguments.seed)
    print(f"{'search':22} {'runs':>4}   mean   deviation  published  difference  CPU s")
    for name, row in found.items():
        print(
            f"{name:22} {row['runs']:4} {row['mean']:.4f}  {row['deviation']:9.4f}  {row['published']:9.2f} "
            f"{row['difference']:+11.4f} {row['cpu_s']:6.1f}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
