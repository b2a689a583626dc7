"""BOSHNAS (Tuli et al., 2022): climb the upper confidence bound of a heteroscedastic surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator

from formwright.core.records import History, Objective, Request, Trial
from formwright.search.boshnas.acquisition import UpperBound, climb, climb_to_nearest, highest, most_uncertain
from formwright.search.boshnas.gobi import Ascent
from formwright.search.boshnas.parameters import Floats
from formwright.search.boshnas.surrogate import Surrogate, fit
from formwright.search.boshnas.terrain import Terrain
from formwright.search.candidates import near_the_best
from formwright.search.listing import Coordinates, listing
from formwright.search.options import among, at_least, check, not_negative, share, yes_or_no
from formwright.search.parents import warming_up
from formwright.search.predictors import INITIAL, first_or_random, initial_for, placed
from formwright.search.scores import goals_of
from formwright.search.targets import targets
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Acquire = Literal["gobi", "gobi-nearest", "exhaustive"]

FEWEST = 3  # finished trials to learn from
OTHERS = 256  # designs that nobody evaluated, at which the student learns


@dataclass(frozen=True)
class Boshnas:
    """Take the design with the highest mean + `k1` aleatoric + `k2` epistemic uncertainty, after `initial` random ones.

    With probability `alpha` the most uncertain design is taken instead, with probability `beta` a random one. The paper
    stops where the best score changes by less than 1e-4 for five trials: `--patience 5 --tolerance 1e-4` of a study.
    Pending trials are learnt from as if they had ended as expected, so that several workers do not try the same.

    `acquire` says how the highest bound is looked for. `gobi` ascends it from random designs by second-order steps (by
    gradients alone without `second_order`) and takes the best of the designs near the way and near its end.
    `gobi-nearest` takes the design nearest to the highest end, as the paper does; few places between designs are
    designs, so that one is often much lower. `exhaustive` looks at every listed design. Without `heteroscedastic` a
    plain network predicts the mean and no noise.

    `transformer2vec` places designs by the edit distance of their graphs. Scores that change with choices which this
    distance hardly sees are not found sooner than by random search (two of four made-up problems over one-hot
    vectors); `one-hot` coordinates find them.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    initial: int = INITIAL
    k1: float = 0.5
    k2: float = 0.5
    alpha: float = 0.1
    beta: float = 0.1
    second_order: bool = True
    heteroscedastic: bool = True
    coordinates: Coordinates = "transformer2vec"
    acquire: Acquire = "gobi"

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            at_least(2, initial=self.initial)
            + not_negative(k1=self.k1, k2=self.k2)
            + (share(alpha=self.alpha, beta=self.beta) or _probabilities(self.alpha, self.beta))
            + yes_or_no(second_order=self.second_order, heteroscedastic=self.heteroscedastic)
            + among("coordinates", self.coordinates, get_args(Coordinates))
            + among("acquire", self.acquire, get_args(Acquire))
        )

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return fewer random designs for a small budget."""
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the design with the highest bound, or an uncertain or random one."""
        proposals = self._promising(history, rng, rng.random())
        return first_or_random(proposals, self.space, history, rng, self.legal)

    def _promising(self, history: History, rng: Generator, draw: float) -> Iterator[Proposal]:
        if warming_up(history, self.initial) or draw >= 1 - self.beta:
            return
        listed = self._terrain.listed
        trials = placed(history.finished, listed.row)
        near = near_the_best(self.space, listed, history, self.objectives, rng)
        candidates = self._terrain.candidates(history, near)
        if len(trials) < FEWEST or not len(candidates.points):
            return
        pending = placed(history.pending, listed.row)
        bound = UpperBound(self._fit(trials, pending, candidates.points, rng), self.k1, self.k2)
        order = most_uncertain if draw >= 1 - self.alpha - self.beta else self._highest
        yield from map(candidates.proposal, order(bound, candidates.points, rng))

    def _highest(self, bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
        ascent = Ascent(self.second_order)
        match self.acquire:
            case "gobi":
                return climb(bound, points, ascent, rng)
            case "gobi-nearest":
                return climb_to_nearest(bound, points, ascent, rng)
            case _:
                return highest(bound, points, rng)

    def _fit(self, trials: Sequence[Trial], pending: Sequence[Trial], points: Floats, rng: Generator) -> Surrogate:
        x = self._terrain.place([trial.request for trial in trials])
        y = targets(trials, self.objectives).astype(np.float32)
        others = points[rng.integers(len(points), size=OTHERS)]
        found = fit(x, y, others, rng, self.heteroscedastic)
        if not pending:
            return found
        more = self._terrain.place([trial.request for trial in pending])
        expected = found.predict(more).mean
        return fit(np.concatenate([x, more]), np.concatenate([y, expected]), others, rng, self.heteroscedastic)

    @cached_property
    def _terrain(self) -> Terrain:
        return Terrain.of(listing(self.space, self.coordinates), self.legal)


def _probabilities(alpha: float, beta: float) -> list[str]:
    return [] if alpha + beta <= 1 else [f"alpha and beta add up to {alpha + beta}; they are parts of 1."]
