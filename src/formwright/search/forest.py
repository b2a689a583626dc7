"""Expected improvement by a random forest, as in SMAC (Hutter et al., 2011), over points that stand for designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import History, Objective, Request
from formwright.search.expected import expected_improvement
from formwright.search.listing import Coordinates
from formwright.search.options import among, at_least, check
from formwright.search.predictors import INITIAL, first_or_random, initial_for, ranked
from formwright.search.scores import goals_of
from formwright.search.survey import Seen, Survey
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Floats = NDArray[np.float64]

LEAST_LEAF = 2  # trials that a leaf holds at least, so that no tree learns single scores by heart
SHARE = 0.5  # of the coordinates that a branch may choose from
LEAST_DEVIATION = 1e-3  # trees may all agree, and there is still something to gain


@dataclass(frozen=True)
class Forest:
    """Take the design from which a random forest expects most improvement, after `initial` random ones.

    Every listed design is looked at. The forest's mean and the deviation between its `trees` stand for what a design
    will score. Trees tell which choices matter and how they act together, where distances between points count all
    choices alike; so they are at home on one-hot coordinates.

    Differs from SMAC: every proposal follows the forest, where SMAC draws every second one at random. Pending trials
    are believed to score what the forest expects of them. Proposals depend on the version of scikit-learn.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    coordinates: Coordinates = "one-hot"
    trees: int = 40
    initial: int = INITIAL

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            among("coordinates", self.coordinates, get_args(Coordinates))
            + at_least(2, trees=self.trees, initial=self.initial)
        )

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return fewer random designs for a small budget."""
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the unseen legal design that promises most."""
        return first_or_random(self._promising(history, rng), self.space, history, rng, self.legal)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        seen = self._survey.look(history, rng)
        if seen is None:
            return
        points, scores = self._believed(seen, rng)
        found = grown(points, scores, seen.candidates.points, self.trees, rng)
        mean, deviation = found.mean(axis=0), np.maximum(found.std(axis=0), LEAST_DEVIATION)
        worth = expected_improvement(mean, deviation, float(seen.scores.max()))
        yield from map(seen.candidates.proposal, ranked(worth, rng, second=mean))

    def _believed(self, seen: Seen, rng: Generator) -> tuple[Floats, Floats]:
        """Return the points and scores to learn from, those of pending trials as if they had ended as expected."""
        if not len(seen.pending):
            return seen.points, seen.scores
        expected = grown(seen.points, seen.scores, seen.pending, self.trees, rng).mean(axis=0)
        return np.concatenate([seen.points, seen.pending]), np.concatenate([seen.scores, expected])

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self.space, self.objectives, self.legal, self.coordinates, self.initial)


def grown(points: Floats, scores: Floats, queries: NDArray[np.floating[Any]], trees: int, rng: Generator) -> Floats:
    """Grow a forest on scores, and return what each of its trees predicts for each query: (trees, queries)."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415  a second, and wanted by this searcher alone

    state = int(rng.integers(2**31))
    forest = RandomForestRegressor(trees, min_samples_leaf=LEAST_LEAF, max_features=SHARE, random_state=state, n_jobs=1)
    forest.fit(points, scores)
    asked = queries.astype(np.float32)  # what trees compare by
    return np.stack([tree.tree_.predict(asked)[:, 0] for tree in forest.estimators_])
