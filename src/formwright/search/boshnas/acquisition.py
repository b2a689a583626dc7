"""Which design to take next: where the surrogate's upper confidence bound is high, or its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from formwright.search.boshnas.gobi import Ascent, ascend, nearest
from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.parameters import Floats
from formwright.search.boshnas.surrogate import Prediction, Surrogate
from formwright.search.predictors import ranked

RESTARTS = 32
NEIGHBOURS = 100


@dataclass(frozen=True, eq=False)
class UpperBound:
    """Add to the predicted mean `k1` times the aleatoric and `k2` times the epistemic uncertainty (Eq. 1)."""

    surrogate: Surrogate
    k1: float
    k2: float

    def __call__(self, x: Floats) -> Floats:
        """Return the bound at points (points, coordinates)."""
        found = self.surrogate.predict(x)
        return found.mean + self._weighted(found)

    def uncertainty(self, x: Floats) -> Floats:
        """Return by how much the bound exceeds the mean."""
        return self._weighted(self.surrogate.predict(x))

    def jet(self, x: Floats) -> Jet:
        """Return the bound with its gradient and the diagonal of its Hessian."""
        mean, aleatoric, epistemic = self.surrogate.jets(x)
        return mean + aleatoric.scale(self.k1) + epistemic.scale(self.k2)

    def _weighted(self, found: Prediction) -> Floats:
        return self.k1 * found.aleatoric + self.k2 * found.epistemic


def highest(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    """Return the rows of the points, the highest bound first."""
    return ranked(bound(points).astype(np.float64), rng)


def most_uncertain(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    """Return the rows of the points, the greatest uncertainty first."""
    return ranked(bound.uncertainty(points).astype(np.float64), rng)


def climb(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[int]:
    """Return rows of points that lie near ascents from random points, the highest bound first.

    Few places in the box of the points are points themselves, and the highest place is hardly ever one. So every point
    competes that is the nearest to a stage of an ascent, or among the nearest hundred to its end.
    """
    *stages, end = _ascents(bound, points, ascent, rng)
    found = [nearest(points, end, NEIGHBOURS), *(nearest(points, stage) for stage in stages)]
    rows = np.unique(np.concatenate([rows.ravel() for rows in found]))
    return [int(rows[index]) for index in highest(bound, points[rows], rng)]


def climb_to_nearest(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[int]:
    """Return the row of the point that is nearest to the end of each ascent, the highest end first."""
    end = _ascents(bound, points, ascent, rng)[-1]
    return [int(row) for row in nearest(points, end[highest(bound, end, rng)]).ravel()]


def _ascents(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[Floats]:
    starts = points[rng.integers(len(points), size=RESTARTS)]
    return ascend(bound.jet, starts, points.min(axis=0), points.max(axis=0), ascent)
