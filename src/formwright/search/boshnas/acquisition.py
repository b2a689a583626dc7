"""Acquisition of BOSHNAS: designs with a high upper confidence bound, or a high uncertainty.

The bound is climbed by GOBI (gradient-based optimisation using backpropagation to the input; Tuli et al., 2021) with
second-order steps. AdaHessian (Yao et al., 2021) divides the mean of the gradients by the root mean square of the
Hessian's diagonal, which it estimates from random vectors; here it is exact. Many starts ascend in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.search.boshnas.networks import Floats, Jet
from formwright.search.boshnas.surrogate import ScorePrediction, Surrogate
from formwright.search.candidates import ranked

FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.5, 0.9, 1e-8  # gradients are exact here, so little averaging is needed
SECOND_ORDER_RATE, FIRST_ORDER_RATE = 0.5, 0.1  # the first in units of Newton's step, the second of the points


@dataclass(frozen=True)
class Ascent:
    """Options of the ascent: second or first order, the maximum number of steps, and when a point has converged.

    It has converged when no coordinate moves by more than `still` of the box's side.
    """

    second_order: bool = True
    most_steps: int = 60
    still: float = 1e-3

    def rate(self, step: int) -> float:
        """Return the length of a step; first-order steps shrink so that they converge."""
        return SECOND_ORDER_RATE if self.second_order else FIRST_ORDER_RATE * (1 - step / self.most_steps)


def ascend(bound: Callable[[Floats], Jet], starts: Floats, low: Floats, high: Floats, ascent: Ascent) -> list[Floats]:
    """Climb `bound` from each start (points, coordinates) within the box from low to high, until all have converged.

    Return where the points were after 1, 2, 4, 8, ... steps, and at last where they ended.
    """
    x, stages = starts, []
    first, second = np.zeros_like(x), np.zeros_like(x)
    for step in range(1, ascent.most_steps + 1):
        jet = bound(x)
        gradient = jet.slope[..., 0]
        steepness = jet.curvature[..., 0] if ascent.second_order else gradient
        first += (1 - FIRST_MOMENT) * (gradient - first)
        second += (1 - SECOND_MOMENT) * (steepness**2 - second)
        direction = first / (1 - FIRST_MOMENT**step)
        size = np.sqrt(second / (1 - SECOND_MOMENT**step)) + EPSILON
        x, before = np.clip(x + ascent.rate(step) * direction / size, low, high), x
        if np.all(np.abs(x - before) <= ascent.still * (high - low)):
            break
        if step & (step - 1) == 0:
            stages.append(x)
    return [*stages, x]


def nearest(points: Floats, targets: Floats, number: int = 1) -> NDArray[np.intp]:
    """Return the rows of the `number` points nearest to each target, (targets, number), unordered."""
    # squared distance, up to a constant
    distance = (points**2).sum(axis=1) - 2 * targets @ points.T
    if number >= len(points):
        return np.tile(np.arange(len(points)), (len(targets), 1))
    return np.argpartition(distance, number - 1, axis=1)[:, :number]


RESTARTS = 32
NEIGHBOURS = 100


@dataclass(frozen=True, eq=False)
class UpperBound:
    """Add to the predicted mean `k1` times the aleatoric and `k2` times the epistemic uncertainty (Eq. 1)."""

    surrogate: Surrogate
    k1: float
    k2: float

    def __call__(self, x: Floats) -> Floats:
        found = self.surrogate.predict(x)
        return found.mean + self._weighted(found)

    def uncertainty(self, x: Floats) -> Floats:
        return self._weighted(self.surrogate.predict(x))

    def jet(self, x: Floats) -> Jet:
        mean, aleatoric, epistemic = self.surrogate.jets(x)
        return mean + aleatoric.scale(self.k1) + epistemic.scale(self.k2)

    def _weighted(self, found: ScorePrediction) -> Floats:
        return self.k1 * found.aleatoric + self.k2 * found.epistemic


def highest(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    return ranked(bound(points).astype(np.float64), rng)


def most_uncertain(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    return ranked(bound.uncertainty(points).astype(np.float64), rng)


def climb(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[int]:
    """Return rows of points that lie near ascents from random points, the highest bound first.

    The maximum of the bound is hardly ever at a design. So the candidates are the points nearest to a stage of an
    ascent, and the hundred nearest to its end.
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
