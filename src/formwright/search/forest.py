"""Expected improvement by a random forest, as in SMAC (Hutter et al., 2011), over points of designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.options import option
from formwright.core.records import Objective
from formwright.search.candidates import INITIAL, SurrogateSearch, TrainingData, expected_improvement
from formwright.search.listing import Coordinates
from formwright.search.options import among, at_least, check
from formwright.search.proposals import Legal, anything
from formwright.search.scores import goals_of
from formwright.space import Space

Floats = NDArray[np.float64]
LEAST_LEAF = 2  # trials that a leaf holds at least, so that no tree memorises single scores
SHARE = 0.5  # of the coordinates that a branch may choose from
LEAST_DEVIATION = 1e-3  # a floor for where all trees agree


@dataclass(frozen=True)
class Forest(SurrogateSearch):
    """Propose the design with the largest expected improvement under a random forest, after `initial` random ones.

    Every listed design is scored by the mean and the deviation of the predictions of the `trees`. Trees learn which
    choices matter and how they interact, so one-hot coordinates suit them.

    Differs from SMAC: every proposal follows the forest, where SMAC draws every second one at random. Pending trials
    count with their predicted scores. Proposals depend on the version of scikit-learn.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    coordinates: Coordinates = option("one-hot", "how designs are encoded")
    trees: int = option(40, "trees of the forest")
    initial: int = option(INITIAL, "random designs before the first prediction")

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            among("coordinates", self.coordinates, get_args(Coordinates))
            + at_least(2, trees=self.trees, initial=self.initial)
        )

    def _worth(self, seen: TrainingData, rng: Generator) -> tuple[Floats, Floats]:
        points, scores = seen.points, seen.scores
        if len(seen.pending):
            expected = grown(points, scores, seen.pending, self.trees, rng).mean(axis=0)
            points, scores = np.concatenate([points, seen.pending]), np.concatenate([scores, expected])
        found = grown(points, scores, seen.candidates.points, self.trees, rng)
        mean, deviation = found.mean(axis=0), np.maximum(found.std(axis=0), LEAST_DEVIATION)
        return expected_improvement(mean, deviation, float(seen.scores.max())), mean


def grown(points: Floats, scores: Floats, queries: NDArray[np.floating[Any]], trees: int, rng: Generator) -> Floats:
    """Grow a forest on scores, and return what each of its trees predicts for each query: (trees, queries)."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415  a second, and wanted by this searcher alone

    state = int(rng.integers(2**31))
    forest = RandomForestRegressor(trees, min_samples_leaf=LEAST_LEAF, max_features=SHARE, random_state=state, n_jobs=1)
    forest.fit(points, scores)
    asked = queries.astype(np.float32)  # what trees compare by
    return np.stack([tree.tree_.predict(asked)[:, 0] for tree in forest.estimators_])
