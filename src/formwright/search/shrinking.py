"""Shrink the candidates of a block while it is trained: in every bin of like costs the worse half goes, round by round.

NAS-BERT (Xu et al., 2021) does so until ten candidates are left in each of ten bins. That its bins are by size and
latency, that half goes by validation loss, and both numbers are known second-hand. Decided here: a bin is a cell of a
grid whose axes are cut into parts of equal extent, from the least to the most; candidates that were not judged stay; of
an odd number the middle one stays.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formwright.core.errors import IllegalInput

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

BINS, LEAST = 10, 10  # published


def bins(costs: ArrayLike, parts: int = BINS) -> Indices:
    """Return the bin of each candidate, numbered from 0; `costs` has a row for each, such as its size and latency.

    Candidates that share a bin are alike in every cost. Bins without candidates have no number.
    """
    table: Floats = np.asarray(costs, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise IllegalInput(f"bins need a row of finite costs for each candidate, not an array of shape {table.shape}.")
    if parts < 1:
        raise IllegalInput(f"parts is {parts}; an axis has at least one.")
    if not len(table):
        return np.zeros(0, dtype=np.intp)
    low, extent = table.min(axis=0), np.ptp(table, axis=0)
    shares = np.divide(table - low, extent, out=np.zeros_like(table), where=extent > 0)
    cells = np.minimum((shares * parts).astype(np.intp), parts - 1)  # the largest belongs to the last part
    numbers: Indices = np.unique(np.ravel_multi_index(tuple(cells.T), (parts,) * cells.shape[1]), return_inverse=True)[
        1
    ]
    return numbers


def survivors(losses: ArrayLike, bin_of: ArrayLike, least: int = LEAST) -> Mask:
    """Tell who stays after a round: the better half of those judged in each bin, and all who were not judged (NaN).

    No bin falls below `least` candidates because of a round; one that has no more keeps all. Of equals the first stays.
    """
    values: Floats = np.asarray(losses, dtype=np.float64)
    bin_numbers: Indices = np.asarray(bin_of, dtype=np.intp)
    if values.shape != bin_numbers.shape or values.ndim != 1:
        raise IllegalInput(f"there are losses of shape {values.shape} for bins of shape {bin_numbers.shape}.")
    judged = ~np.isnan(values)
    size, known = np.bincount(bin_numbers), np.bincount(bin_numbers, judged)
    drop = np.minimum(known // 2, np.maximum(size - least, 0)).astype(np.intp)
    order = np.lexsort((values, ~judged, bin_numbers))  # bin by bin, best first, who was not judged last
    first = np.concatenate([[0], np.cumsum(size)])[bin_numbers[order]]
    place = np.arange(len(order)) - first
    stays = np.empty(len(values), dtype=bool)
    stays[order] = (place < known[bin_numbers[order]] - drop[bin_numbers[order]]) | ~judged[order]
    return stays


def rounds(candidates: int, least: int = LEAST) -> int:
    """Count the rounds after which a bin of so many candidates, all judged every time, shrinks no more."""
    number = 0
    while candidates > least and candidates > 1:
        candidates -= min(candidates // 2, candidates - least)
        number += 1
    return number
