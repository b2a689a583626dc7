"""Weighted Manhattan distances of many vectors of small counts, by one matrix product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_STRIP = 512  # rows at a time, so that what is held beside the result stays small


def manhattan(rows: Floats, columns: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |row - column|) for each row against each column.

    Counts and weights are whole and not negative; the result is exact where the sums stay below 2**24.
    """
    result = np.zeros((len(rows), len(columns)), np.float32)
    if result.size == 0:
        return result
    # |a - b| = a + b - 2 min(a, b), and min(a, b) counts the levels that both reach: a product of zeros and ones
    low, place, level = _levels(rows, columns)
    reached = (columns[:, place] >= level).astype(np.float32)
    for start in range(0, len(rows), _STRIP):
        strip, part = rows[start : start + _STRIP], result[start : start + _STRIP]
        np.matmul((strip[:, place] >= level) * (-2 * weights[place]), reached.T, out=part)
        part += ((strip - low) @ weights)[:, None]
        part += (columns - low) @ weights
    return result


def manhattan_pairs(left: Floats, right: Floats, weights: Floats) -> Floats:
    """Return sum(weights * |left - right|) for each row of both."""
    difference = left - right
    distances: Floats = np.abs(difference, out=difference) @ weights
    return distances


def _levels(rows: Floats, columns: Floats) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Give the counts that all vectors reach, then the place and the number of each level above that both may reach."""
    low: Floats = np.minimum(rows.min(axis=0), columns.min(axis=0))
    high = np.minimum(rows.max(axis=0), columns.max(axis=0))
    steps = (high - low).astype(np.intp)
    place = np.repeat(np.arange(len(steps)), steps)
    first = np.cumsum(steps) - steps
    return low, place, low[place] + (np.arange(len(place)) - first[place] + 1).astype(np.float32)
