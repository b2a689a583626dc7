"""How many dimensions an embedding needs: where further ones stop to pay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from formwright.core.errors import IllegalInput


def knee(errors: Mapping[int, float]) -> int:
    """Return the number of dimensions at which the error, given for several numbers, bends most.

    That is the point farthest below the straight line from the first point of the curve to the last (Satopaa et al.,
    2011); where no point is below it, the smallest number with the least error.
    """
    if not errors:
        raise IllegalInput("a curve without points has no knee.")
    numbers = np.array(sorted(errors), dtype=np.float64)
    values = np.array([errors[int(number)] for number in numbers])
    line = np.interp(numbers, numbers[[0, -1]], values[[0, -1]])
    below = line - values
    rounding = 1e-9 * np.ptp(values)
    best = below.argmax() if below.max() > rounding else values.argmin()
    return int(numbers[best])
