"""What one proposal of BOSHNAS costs, how good its surrogate is, and whether GOBI finds the highest bound.

Over the 9,312 designs of flexibert-nano with made-up scores (smooth, curved, and noisier for some designs), in CPU
seconds of one thread. Surrogate: Kendall's tau with the true scores of unseen designs, the share of outcomes inside the
90 % interval, and how much of the teacher's uncertainty the student explains. GOBI: in how many proposals it asks for
the unseen design with the highest upper confidence bound, how many designs are higher than what it asks for (median),
and how much higher the highest is, in standard deviations of the bound over all designs.

Run `OMP_NUM_THREADS=1 python benchmarks/boshnas.py [--coordinates one-hot] [--repeats 10] [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from formwright.core.records import History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.boshnas import (
    OTHERS,
    RESTARTS,
    Ascent,
    Boshnas,
    ScaledListing,
    UpperBound,
    ascend,
    climb,
    climb_to_nearest,
    fit,
    highest,
    spread,
)
from formwright.search.listing import listing
from formwright.search.proposals import anything
from formwright.space.zoo import load_space

SPACE = load_space("flexibert-nano")
GOALS = (Objective.parse("accuracy:max"),)
OBSERVATIONS = (20, 100)
NINETY = 1.645
HELD_OUT = 1_000


class Problem:
    """Hold made-up scores of all designs, and some of them observed with noise."""

    def __init__(self, points: Any, number: int, seed: int) -> None:
        rng = derive(seed, "boshnas", number)
        x = np.stack([SPACE.encode(design) for design in listing(SPACE, "one-hot").designs])
        x = x - x.mean(axis=0)
        pairs = np.einsum("ni,ij,nj->n", x, rng.normal(size=(x.shape[1], x.shape[1])), x)
        mixed = standard(x @ rng.normal(size=x.shape[1])) + 0.4 * standard(pairs)
        truth = standard(-np.log1p(np.exp(-mixed)))
        noise = np.where(x[:, 0] > 0, 0.4, 0.2)
        shuffled = rng.permutation(len(x))
        self.points, self.rng, self.rows, self.unseen = points, rng, shuffled[:number], shuffled[number:]
        outcomes = truth + noise * rng.normal(size=len(x))
        centre, scale = outcomes[self.rows].mean(), outcomes[self.rows].std()
        self.truth, self.outcomes = (truth - centre) / scale, (outcomes - centre) / scale

    def surrogate(self) -> Any:
        others = self.points[self.rng.integers(len(self.points), size=OTHERS)]
        return fit(self.points[self.rows], self.outcomes[self.rows].astype(np.float32), others, self.rng)

    def history(self) -> History:
        listed = listing(SPACE, "one-hot")
        requests = [Request(listed.cards[row], design=listed.designs[row]) for row in self.rows]
        scores = [Observation({"accuracy": float(self.outcomes[row])}) for row in self.rows]
        trials = zip(requests, scores, strict=True)
        return History(tuple(Trial(number, asked, "finished", found) for number, (asked, found) in enumerate(trials)))


def standard(values: Any) -> Any:
    return (values - values.mean()) / values.std()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = process_time()
    result = work()
    return result, process_time() - started


def one(problem: Problem, searcher: Boshnas) -> dict[str, float]:
    """Measure one proposal, piece by piece and whole."""
    surrogate, fit_s = timed(problem.surrogate)
    bound = UpperBound(surrogate, searcher.k1, searcher.k2)
    unseen = problem.points[problem.unseen]
    box = unseen.min(axis=0), unseen.max(axis=0)
    starts = unseen[problem.rng.integers(len(unseen), size=RESTARTS)]
    _, gobi_s = timed(lambda: ascend(bound.jet, starts, *box, Ascent()))
    _, climb_s = timed(lambda: climb(bound, unseen, Ascent(), problem.rng))
    _, exhaustive_s = timed(lambda: highest(bound, unseen, problem.rng))
    history = problem.history()
    _, ask_s = timed(lambda: searcher.ask(history, problem.rng))
    found = {"fit_s": fit_s, "gobi_s": gobi_s, "nearest_s": climb_s - gobi_s, "exhaustive_s": exhaustive_s}
    return {**found, "ask_s": ask_s, **quality(problem, surrogate), **reach(problem, bound, unseen)}


def quality(problem: Problem, surrogate: Any) -> dict[str, float]:
    """Judge the surrogate on designs it has not seen."""
    rows = problem.unseen[:HELD_OUT]
    found = surrogate.predict(problem.points[rows])
    low, high = found.interval(NINETY)
    xi = spread(surrogate.teacher, problem.points[rows], problem.rng, samples=300)
    outcomes = problem.outcomes[rows]
    return {
        "tau": float(kendalltau(found.mean, problem.truth[rows]).statistic),
        "coverage": float(np.mean((low <= outcomes) & (outcomes <= high))),
        "student_r2": float(1 - np.mean((found.epistemic - xi) ** 2) / xi.var()),
    }


def reach(problem: Problem, bound: UpperBound, unseen: Any) -> dict[str, float]:
    """Compare what GOBI asks for with the highest bound of all designs."""
    values, result = bound(unseen), {}
    for name, search in (("gobi", climb), ("gobi-nearest", climb_to_nearest)):
        for order in (True, False):
            value = values[search(bound, unseen, Ascent(order), problem.rng)[0]]
            label = f"{name}/{'second' if order else 'first'}-order"
            result[f"{label} higher"] = float(np.sum(values > value))
            result[f"{label} reached"] = float(value == values.max())
            result[f"{label} gap"] = float((values.max() - value) / values.std())
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coordinates", choices=("one-hot", "transformer2vec"), default="transformer2vec")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    listed, listing_s = timed(lambda: listing(SPACE, given.coordinates))
    points = ScaledListing.of(listed, anything).candidates(History()).points
    # neither uncertain nor random designs: every proposal is the costly kind
    searcher = Boshnas(SPACE, GOALS, alpha=0.0, beta=0.0, coordinates=given.coordinates)
    result: dict[str, Any] = {"coordinates": given.coordinates, "listing_s": listing_s}
    for number in OBSERVATIONS:
        rows = [one(Problem(points, number, seed), searcher) for seed in range(given.repeats)]
        typical = {name: (np.median if name.endswith(("_s", "higher")) else np.mean) for name in rows[0]}
        result[str(number)] = {name: float(typical[name]([row[name] for row in rows])) for name in rows[0]}
        print(f"{number} observations, {given.coordinates}, {given.repeats} repeats")
        print("\n".join(f"  {name:32} {value:8.3f}" for name, value in result[str(number)].items()), flush=True)
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
