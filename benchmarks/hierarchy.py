"""Does a search from coarse to fine need fewer evaluations than a search of the fine space itself?

A made-up problem over flexibert-nano-s1star (3.3 billion designs), another one for each seed: every layer has merits by
its operation, heads, width and feed-forward stack, which differ from depth to depth but are alike to a degree; layers
side by side go together more or less well; observations are noisy. The best design is known exactly. Quality is the
true value of the design observed to be best so far, 0 being the mean of random designs and 1 the best design of all.
Coarse spaces are not favoured: how good their best design is, is printed.

Run `python benchmarks/hierarchy.py [--json FILE] [--rows FILE] [--seeds N]`. Finished runs are kept in the rows file,
so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from formwright.core.records import History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.space import Case, Fields
from formwright.space.zoo import load_space

Row = dict[str, Any]
SPACE = load_space("flexibert-nano-s1star")
GOAL = (Objective.parse("merit:max"),)
EVALUATIONS = 100
MARKS = (0.6, 0.7, 0.8)
ALIKE = 0.5  # how much of a merit is the same at every depth
NOISE = 0.02  # of an observation, in units of quality

OPERATIONS = [
    Case("sa", "sdp"),
    Case("sa", "wma"),
    Case("lt", "dft"),
    Case("lt", "dct"),
    Case("dsc", 5),
    Case("dsc", 9),
]
STACKS = [stack for depth in (1, 3) for stack in product((64, 128), repeat=depth)]
LAYERS = list(product(range(6), range(2), range(2), range(len(STACKS))))
HEADS, WIDTHS, DEPTHS = (2, 4), (32, 64), (2, 4)

CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {"by": "gene"}),
    "evolution": ("regularized-evolution", {}),
    "boshnas": ("boshnas", {}),
    "boshnas, one-hot": ("boshnas", {"coordinates": "one-hot"}),
    "coarse to fine, random": ("coarse-to-fine", {"searcher": "random", "options": {"by": "gene"}}),
    "coarse to fine, evolution": ("coarse-to-fine", {"searcher": "regularized-evolution"}),
    "coarse to fine, boshnas": ("coarse-to-fine", {}),
    "coarse to fine, boshnas, one-hot": ("coarse-to-fine", {"options": {"coordinates": "one-hot"}}),
}


@dataclass(frozen=True)
class Problem:
    """Give every design of the space a value."""

    seed: int

    @cached_property
    def _layer_merits(self) -> np.ndarray:
        """Give the merit of each kind of layer at each depth, (4, layers)."""
        rng = derive(self.seed, "merits")

        def table(*shape: int) -> np.ndarray:
            own = rng.standard_normal((4, *shape))
            return np.sqrt(ALIKE) * rng.standard_normal(shape) + np.sqrt(1 - ALIKE) * own

        operation, heads, width, wide, deep = table(6), table(2), table(2), table(3), table(1)
        kinds = [
            operation[:, o] + heads[:, n] + width[:, h] + self._stack(STACKS[s], wide, deep) for o, n, h, s in LAYERS
        ]
        return np.stack(kinds, axis=1)

    @staticmethod
    def _stack(stack: Sequence[int], wide: np.ndarray, deep: np.ndarray) -> np.ndarray:
        chosen = np.array([1.0 if width == 128 else -1.0 for width in stack])
        return wide[:, : len(stack)] @ chosen / np.sqrt(len(stack)) + (deep[:, 0] if len(stack) == 3 else 0.0)

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Say how well a kind of layer goes above another, (layers below, layers above)."""
        table = derive(self.seed, "pairs").standard_normal((6, 6))
        operations = np.array([layer[0] for layer in LAYERS])
        return table[operations[:, None], operations[None, :]]

    @cached_property
    def _depths(self) -> dict[int, float]:
        return dict(zip(DEPTHS, 0.5 * derive(self.seed, "depths").standard_normal(2), strict=True))

    def raw(self, layers: Sequence[int]) -> float:
        """Return the value of a design by the kinds of its layers."""
        merits = np.mean([self._layer_merits[depth, kind] for depth, kind in enumerate(layers)])
        pairs = np.mean([self._pairs[low, high] for low, high in pairwise(layers)])
        return float(merits + 0.5 * pairs + self._depths[len(layers)])

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Return the mean of designs drawn by gene, and what the best design of all has above it."""
        rng = derive(self.seed, "mean")
        mean = float(np.mean([self.raw(kinds(SPACE.sample(rng, "gene"))) for _ in range(2_000)]))
        return mean, max(self._best(depth) for depth in DEPTHS) - mean

    def _best(self, depth: int) -> float:
        """Find the value of the best design of a depth, layer by layer (Viterbi)."""
        best = self._layer_merits[0] / depth
        for index in range(1, depth):
            step = best[:, None] + 0.5 * self._pairs / (depth - 1)
            best = step.max(axis=0) + self._layer_merits[index] / depth
        return float(best.max() + self._depths[depth])

    def quality(self, design: Fields) -> float:
        mean, above = self.scale
        return (self.raw(kinds(design)) - mean) / above

    def evaluate(self, request: Request) -> Observation:
        noise = derive(self.seed, "noise", request.card.digest).standard_normal()
        design = request.design
        assert isinstance(design, Fields)
        return Observation({"merit": self.quality(design) + NOISE * float(noise)})

    def best_in_pairs(self) -> float:
        """Return the quality of the best design whose layers are equal in pairs, with equal stacks."""
        mean, above = self.scale
        equal = [number for number, kind in enumerate(LAYERS) if len(set(STACKS[kind[3]])) == 1]
        found = [self.raw(pair * 2) for pair in ([kind] for kind in equal)]
        found += [self.raw([one, one, two, two]) for one in equal for two in equal]
        return (max(found) - mean) / above


def kinds(design: Fields) -> list[int]:
    """Number the layers of a design by their kind."""
    return [_kind(layer) for layer in design["layers"]]


def _kind(layer: Fields) -> int:
    place = (OPERATIONS.index(layer.operation), HEADS.index(layer.heads), WIDTHS.index(layer.hidden))
    return NUMBER[(*place, STACKS.index(layer.feed_forward))]


NUMBER = {layer: number for number, layer in enumerate(LAYERS)}


def run(name: str, seed: int, evaluations: int) -> Row:
    """Let one contestant search the problem of a seed, and note the quality after each evaluation."""
    problem, started = Problem(seed), time.process_time()
    searcher_name, options = CONTESTANTS[name]
    searcher = make_searcher(searcher_name, SPACE, GOAL, trials=evaluations, **options)
    trials: list[Trial] = []
    for number in range(evaluations):
        request = searcher.ask(History(tuple(trials)), derive(seed, "ask", number))
        trials.append(Trial(number, request, "finished", problem.evaluate(request)))
    return {
        "contestant": name,
        "seed": seed,
        "evaluations": evaluations,
        "curve": [round(value, 4) for value in curve(problem, trials)],
        "best_in_pairs": problem.best_in_pairs(),
        "cpu_s": time.process_time() - started,
    }


def curve(problem: Problem, trials: Sequence[Trial]) -> list[float]:
    """Return the true quality of the design that was observed to be best, after each evaluation."""
    observed = [trial.observation.metrics["merit"] for trial in trials if trial.observation]
    true = [problem.quality(trial.request.design) for trial in trials]  # type: ignore[arg-type]
    return [true[int(np.argmax(observed[: end + 1]))] for end in range(len(trials))]


def summary(rows: Sequence[Row]) -> Row:
    """Give for each contestant the mean final quality with its interval, and the evaluations to reach each mark."""
    found = {}
    for name in CONTESTANTS:
        curves = np.array([row["curve"] for row in rows if row["contestant"] == name])
        if len(curves):
            found[name] = {
                "seeds": len(curves),
                "final": interval(curves[:, -1]),
                "half": interval(curves[:, curves.shape[1] // 2 - 1]),
                "evaluations_to": {str(mark): reached(curves, mark) for mark in MARKS},
                "curve": curves.mean(axis=0).round(4).tolist(),
                "cpu_s": float(np.mean([row["cpu_s"] for row in rows if row["contestant"] == name])),
            }
    return {"best_in_pairs": interval(np.array([row["best_in_pairs"] for row in rows])), "contestants": found}


def reached(curves: np.ndarray, mark: float) -> Row:
    """Say in what share of the runs a quality was reached, and the median evaluations (None: not in half of them)."""
    first = [int(np.argmax(one >= mark)) + 1 if (one >= mark).any() else None for one in curves]
    median = float(np.median([np.inf if number is None else number for number in first]))
    return {"share": 1 - first.count(None) / len(first), "median": None if np.isinf(median) else median}


def interval(sample: np.ndarray) -> list[float]:
    """Return the mean and its 90 % bootstrap interval."""
    drawn = derive(0, "bootstrap").choice(sample, (10_000, len(sample))).mean(axis=1)
    return [float(sample.mean()), *map(float, np.quantile(drawn, (0.05, 0.95)))]


def read(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()] if rows.exists() else []


def show(figures: Row) -> None:
    mean, low, high = figures["best_in_pairs"]
    print(f"the best design in equal pairs has quality {mean:.3f} [{low:.3f}, {high:.3f}]")
    for name, found in figures["contestants"].items():
        mean, low, high = found["final"]
        marks = ", ".join(f"{mark}: {at['median'] or '-'}" for mark, at in found["evaluations_to"].items())
        print(
            f"{name:33} {mean:.3f} [{low:.3f}, {high:.3f}]  median evaluations to {marks}  {found['cpu_s']:.0f} CPU s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=Path, default=Path("hierarchy.jsonl"), help="where finished runs are kept")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="run these contestants alone")
    arguments = parser.parse_args()
    known = {(row["contestant"], row["seed"], row["evaluations"]) for row in read(arguments.rows)}
    for seed in range(arguments.seeds):
        for name in arguments.only or CONTESTANTS:
            if (name, seed, arguments.evaluations) not in known:
                with arguments.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run(name, seed, arguments.evaluations)) + "\n")
    rows = [row for row in read(arguments.rows) if row["evaluations"] == arguments.evaluations]
    figures = summary([row for row in rows if row["seed"] < arguments.seeds])
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
