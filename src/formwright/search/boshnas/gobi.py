"""Gradient-based optimisation by backpropagation to the input (GOBI; Tuli et al., 2021), by second-order steps.

AdaHessian (Yao et al., 2021) divides the mean of the gradients by the root mean square of the Hessian's diagonal. It
estimates that diagonal from random vectors; here it is exact. Many starts ascend side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.parameters import Floats

FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.5, 0.9, 1e-8  # gradients are exact here: little to average out
SECOND_ORDER_RATE, FIRST_ORDER_RATE = 0.5, 0.1  # the first in units of Newton's step, the second of the points


@dataclass(frozen=True)
class Ascent:
    """Say how to ascend: by curvature or by gradients alone, how long at most, and when a point stands still.

    It stands still when no coordinate moves by more than `still` of the box's side.
    """

    second_order: bool = True
    most_steps: int = 60
    still: float = 1e-3

    def rate(self, step: int) -> float:
        """Return the length of a step; without curvature only ever shorter steps come to an end."""
        return SECOND_ORDER_RATE if self.second_order else FIRST_ORDER_RATE * (1 - step / self.most_steps)


def ascend(bound: Callable[[Floats], Jet], starts: Floats, low: Floats, high: Floats, ascent: Ascent) -> list[Floats]:
    """Climb `bound` from each start (points, coordinates) within the box from low to high, until all stand still.

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
    """Return the rows of the `number` points nearest to each target, (targets, number), in no order."""
    # the square of the distance, less what is the same for all points
    distance = (points**2).sum(axis=1) - 2 * targets @ points.T
    if number >= len(points):
        return np.tile(np.arange(len(points)), (len(targets), 1))
    return np.argpartition(distance, number - 1, axis=1)[:, :number]
