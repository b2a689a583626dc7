"""BOSHNAS (Tuli et al., 2022): climb the upper confidence bound of a heteroscedastic surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import History, Request, Trial
from formwright.search.boshnas.acquisition import Ascent, UpperBound, climb, climb_to_nearest, highest, most_uncertain
from formwright.search.boshnas.networks import Floats
from formwright.search.boshnas.surrogate import Surrogate, fit
from formwright.search.candidates import (
    Candidates,
    PredictorSearch,
    Rows,
    legal_rows,
    near_the_best,
    placed,
    points,
    unseen,
)
from formwright.search.listing import Coordinates, Listing, listing
from formwright.search.proposals import Legal, Proposal, warming_up
from formwright.search.scores import targets


@dataclass(frozen=True, eq=False)
class ScaledListing:
    """Hold the rows of a listing that are within the limits, each card once, and the scale of the points.

    Points are shifted and divided by one number, so that coordinates vary by about 1 and distances keep their order.
    """

    listed: Listing
    rows: Rows
    centre: NDArray[np.float64]
    deviation: float

    @classmethod
    def of(cls, listed: Listing, legal: Legal) -> ScaledListing:
        centre = listed.points.mean(axis=0)
        deviation = float(np.sqrt(np.mean((listed.points - centre) ** 2)))
        return cls(listed, legal_rows(listed, legal), centre, deviation or 1.0)

    def place(self, asked: Sequence[Request | Proposal]) -> Floats:
        return self._scaled(points(self.listed.points_of, asked))

    def candidates(self, history: History, more: Sequence[Proposal] = ()) -> Candidates:
        found = unseen(self.listed, history, self.rows, more)
        return replace(found, points=self._scaled(found.points))

    def _scaled(self, places: Floats) -> Floats:
        return ((places - self.centre) / self.deviation).astype(np.float32)


Acquire = Literal["gobi", "gobi-nearest", "exhaustive"]
FEWEST = 3  # finished trials to learn from
OTHERS = 256  # unevaluated designs that the student is fitted to as well


@dataclass(frozen=True)
class Boshnas(PredictorSearch):
    """Propose the design with the highest mean + `k1` aleatoric + `k2` epistemic uncertainty.

    The first `initial` designs are random. With probability `alpha` the most uncertain design is taken instead, with
    probability `beta` a random one. The paper stops where the best score changes by less than 1e-4 for five trials:
    `--patience 5 --tolerance 1e-4` of a study. Pending trials are learnt from with their predicted scores, so that
    several workers do not try the same.

    `acquire` says how the highest bound is looked for. `gobi` ascends it from random designs by second-order steps (by
    gradients alone without `second_order`) and takes the best of the designs near the way and near its end.
    `gobi-nearest` takes the design nearest to the highest end, as the paper does; few places between designs are
    designs, so that one is often much lower. `exhaustive` looks at every listed design. Without `heteroscedastic` a
    plain network predicts the mean and no noise.

    `transformer2vec` places designs by the edit distance of their graphs. Scores that change with choices which this
    distance hardly sees are not found sooner than by random search (two of four made-up problems over one-hot
    vectors); `one-hot` coordinates find them. Designs whose cards are not Formwright's own have one-hot coordinates.
    """

    k1: float = option(0.5, "weight of the aleatoric uncertainty", least=0, most=1e6)
    k2: float = option(0.5, "weight of the epistemic uncertainty", least=0, most=1e6)
    alpha: float = option(0.1, "probability of proposing the most uncertain design", least=0, most=1)
    beta: float = option(0.1, "probability of proposing a random design", least=0, most=1)
    second_order: bool = option(True, "ascend by second-order steps instead of gradients alone")
    heteroscedastic: bool = option(True, "predict the noise of a score too")
    coordinates: Coordinates = option("transformer2vec", "how designs are encoded")
    acquire: Acquire = option("gobi", "how the highest bound is looked for")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha + self.beta > 1:
            raise IllegalInput(f"alpha + beta is {self.alpha + self.beta:g}; it must be at most 1")

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        draw = rng.random()  # drawn first, whether it is used or not
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
    def _terrain(self) -> ScaledListing:
        return ScaledListing.of(listing(self.space, self.coordinates), self.legal)
