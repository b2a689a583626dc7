"""Compare searchers on one problem: several seeds each, random search as the control, and intervals of the means.

`formwright bench` does the same on stored tables of trained models. Five seeds and 25 trials take half a minute here;
claims want more seeds. Where the interval of a searcher and that of random search overlap, nothing was shown.
"""

import sys
from pathlib import Path

import numpy as np

import formwright as fw

SEARCHERS = ("random", "regularized-evolution", "forest")


def evaluate(card, budget):
    """Score a design by a formula with two competing terms, so that the best design is neither end of the space."""
    layers = card.encoder.layers
    return sum(layer.feed_forward[0] for layer in layers) ** 0.5 - 2.0 * len(layers)


def best_scores(searcher, seeds, trials, out):
    """Run one study for each seed, and give the best score of each."""
    scores = []
    for seed in range(seeds):
        folder = Path(out) / f"{searcher}-{seed}"
        study = fw.Study("flexibert-nano", evaluate, ["score:max"], folder, searcher=searcher, seed=seed)
        scores.append(study.run(trials=trials).best_trial.observation.metrics["score"])
    return np.array(scores)


def interval(scores, draws=2000):
    """Give the 95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    means = rng.choice(scores, (draws, len(scores))).mean(axis=1)
    return np.quantile(means, (0.025, 0.975))


if __name__ == "__main__":
    out, seeds, trials = sys.argv[1] if len(sys.argv) > 1 else "runs/compare", *map(int, sys.argv[2:4] or (5, 25))
    for searcher in SEARCHERS:
        scores = best_scores(searcher, seeds, trials, out)
        low, high = interval(scores)
        print(f"{searcher:24} {scores.mean():.3f}  [{low:.3f}, {high:.3f}]  of {seeds} seeds, {trials} trials each")
