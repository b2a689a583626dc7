"""Parameters of small networks, kept in one flat array so that an optimiser's step is a few array operations.

All of it is in single precision: a plain Python number leaves that as it is, a scalar of NumPy's would not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.99, 1e-8


@dataclass(frozen=True)
class Descent:
    """Say how many steps to descend and how fast at first."""

    steps: int
    rate: float


@dataclass(frozen=True, eq=False)
class Parameters:
    """Hold arrays of parameters that share the memory of one flat array."""

    flat: Floats
    arrays: tuple[Floats, ...]

    @classmethod
    def of(cls, arrays: Sequence[Floats]) -> Parameters:
        """Copy arrays into one flat array."""
        flat = np.concatenate([array.ravel() for array in arrays])
        ends = np.cumsum([array.size for array in arrays])
        parts = zip(np.split(flat, ends[:-1]), arrays, strict=True)
        return cls(flat, tuple(part.reshape(array.shape) for part, array in parts))

    def descend(self, gradient: Callable[[], Sequence[Floats]], descent: Descent) -> None:
        """Minimise in place by Adam, at a rate that falls to 0 along a half cosine.

        `gradient` gives the slope of the loss with respect to each array, as the arrays are at the time.
        """
        flat = self.flat
        first, second, slope = (np.zeros_like(flat) for _ in range(3))
        for step in range(descent.steps):
            np.concatenate([part.ravel() for part in gradient()], out=slope)
            first += (1 - FIRST_MOMENT) * (slope - first)
            second += (1 - SECOND_MOMENT) * (slope * slope - second)
            rate = 0.5 * descent.rate * (1 + cos(pi * step / descent.steps))
            unbiased = sqrt(1 - SECOND_MOMENT ** (step + 1)) / (1 - FIRST_MOMENT ** (step + 1))
            flat -= rate * unbiased * first / (np.sqrt(second) + EPSILON)
