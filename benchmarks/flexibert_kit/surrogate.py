"""How good the surrogate of BOSHNAS is on real scores, and whether GOBI finds the highest bound of it.

`noise, Spearman` compares the aleatoric uncertainty with the standard deviation between seeds, over the designs of the
table that were trained with several. `on the box` is the share of the coordinates of an ascent's ends that lie on the
edge of the box of all designs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import kendalltau, spearmanr

from formwright.core.records import History
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.search.baselines import total_ranks
from formwright.search.boshnas import (
    OTHERS,
    RESTARTS,
    Ascent,
    ScaledListing,
    UpperBound,
    ascend,
    climb,
    climb_to_nearest,
    fit,
)
from formwright.search.listing import listing

COORDINATES = ("transformer2vec", "transformer2vec-ordered", "one-hot")
OBSERVATIONS = (20, 50, 100)
NINETY = 1.645
CLIMBS = {"gobi": (climb, True), "gobi, first order": (climb, False), "gobi-nearest": (climb_to_nearest, True)}


def judged(benchmark: Benchmark, repeats: int) -> dict[str, Any]:
    """Fit the surrogate to random designs of the table and judge it on the others, in means over the repeats."""
    result: dict[str, Any] = {}
    for coordinates in COORDINATES:
        listed = listing(benchmark.space, coordinates)
        candidates = ScaledListing.of(listed, benchmark.legal).candidates(History())
        points = candidates.points
        places = [benchmark.row(listed.cards[row]) for row in candidates.rows]
        scores, noise = benchmark.scores()[places], _noise(benchmark)[places]
        for number in OBSERVATIONS:
            for model in (True, False):
                found = [_once(points, scores, noise, number, model, seed) for seed in range(repeats)]
                name = f"{coordinates}, {number} observations, {'heteroscedastic' if model else 'homoscedastic'}"
                result[name] = {key: _mean(one[key] for one in found) for key in found[0]}
    return result


def size_axis(benchmark: Benchmark) -> dict[str, float]:
    """Say how far the first axis of the default coordinates is the total block rank, and what that says of scores."""
    listed = listing(benchmark.space)
    ranks, points = np.array(total_ranks(listed.cards)), listed.points - listed.points.mean(axis=0)
    _, lengths, axes = np.linalg.svd(points, full_matrices=False)
    known = [row for row, card in enumerate(listed.cards) if benchmark.legal(card)]
    scores = benchmark.scores()[[benchmark.row(listed.cards[row]) for row in known]]
    return {
        "share of the variance": float(lengths[0] ** 2 / (lengths**2).sum()),
        "with total rank, Spearman": abs(float(spearmanr(points @ axes[0], ranks).statistic)),
        "total rank with scores, Spearman": float(spearmanr(ranks[known], scores, nan_policy="omit").statistic),
    }


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _noise(benchmark: Benchmark) -> Any:
    """Give the standard deviation between seeds of each row; NaN for rows with one seed."""
    table, found = benchmark.table, np.full(len(benchmark.table), np.nan)
    seeds = np.column_stack([benchmark.scores()[table.noise_rows], table.noise_validation[:, :, -1]])
    found[table.noise_rows] = seeds.std(axis=1, ddof=1)
    return found


def _once(points: Any, scores: Any, noise: Any, number: int, heteroscedastic: bool, seed: int) -> dict[str, float]:
    rng = derive(seed, "surrogate", number)
    known = np.flatnonzero(np.isfinite(scores))
    drawn = rng.permutation(known)
    seen, unseen = drawn[:number], drawn[number:]
    outcomes = ((scores - scores[seen].mean()) / scores[seen].std()).astype(np.float32)
    others = points[rng.integers(len(points), size=OTHERS)]
    surrogate = fit(points[seen], outcomes[seen], others, rng, heteroscedastic)
    found = surrogate.predict(points[unseen])
    low, high = found.interval(NINETY)
    measured = np.isfinite(noise)
    follows = spearmanr(surrogate.predict(points[measured]).aleatoric, noise[measured]) if heteroscedastic else None
    return {
        "tau": float(kendalltau(found.mean, outcomes[unseen]).statistic),
        "within the 90 % interval": float(np.mean((low <= outcomes[unseen]) & (outcomes[unseen] <= high))),
        **({} if follows is None else {"noise, Spearman": float(follows.statistic)}),
        **_reach(UpperBound(surrogate, 0.5, 0.5), points[unseen], rng),
        "gobi: on the box": _on_the_box(UpperBound(surrogate, 0.5, 0.5), points[unseen], rng),
    }


def _on_the_box(bound: UpperBound, points: Any, rng: Any) -> float:
    low, high = points.min(axis=0), points.max(axis=0)
    end = ascend(bound.jet, points[rng.integers(len(points), size=RESTARTS)], low, high, Ascent())[-1]
    return float(np.mean((end <= low) | (end >= high)))


def _reach(bound: UpperBound, unseen: Any, rng: Any) -> dict[str, float]:
    """Say how often an ascent ends at the highest bound of all designs, and how far below it on average."""
    values, result = bound(unseen), {}
    for name, (search, second_order) in CLIMBS.items():
        value = values[search(bound, unseen, Ascent(second_order), rng)[0]]
        result[f"{name}: finds the highest"] = float(value == values.max())
        result[f"{name}: below it, in deviations"] = float((values.max() - value) / values.std())
    return result
