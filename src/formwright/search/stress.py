"""Points whose Euclidean distances follow given distances, by least squares.

The sum to be made small, over pairs, is of the squares of (distance of the points - given distance). A step puts every
point at the mean of where the others would have it: at the given distance from them, in the direction in which it
stands now. No step makes the sum larger (SMACOF, De Leeuw & Heiser 1980).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Array = NDArray[np.floating[Any]]  # single or double: what is computed is of the kind of what was given

_STEPS = 200
_PLACING_STEPS = 40
_ROWS = 256  # points placed at a time, so that all that is held for them stays in the processor's cache
_NEGLIGIBLE = 1e-2  # axes along which points spread less than this share of the widest spread are on their way to 0
_WEAK = 0.1  # axes narrower than this share are too uncertain to start from


def arrange(distances: Array, dimensions: int) -> Floats:
    """Place points so that their distances follow a square matrix of distances.

    The points are centred and turned to their principal axes, the widest first. They may have fewer dimensions than
    asked for: where the least squares are reached in fewer, further axes would hold nothing.
    """
    given = distances.astype(np.float64)
    points: Array = _classical(given, min(dimensions, max(len(given) - 1, 1)))
    return _principal(_settled(given, points, None, _STEPS))


def place(distances: Array, anchors: Floats) -> Floats:
    """Place further points, each by its distances to points that stand: a row for each, a column for each anchor."""
    given, fixed = distances.astype(np.float32), anchors.astype(np.float32)
    points = _start(distances, anchors).astype(np.float32)
    for first in range(0, len(points), _ROWS):
        chunk = slice(first, first + _ROWS)
        points[chunk] = _settled(given[chunk], points[chunk], fixed, _PLACING_STEPS)
    return points.astype(np.float64)


def apart(points: Array, others: Array) -> Array:
    """Return the Euclidean distances of all points to all others."""
    squares: Array = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * points @ others.T
    np.maximum(squares, 0, out=squares)  # rounding may have left less than nothing
    np.sqrt(squares, out=squares)
    return squares


def _settled(distances: Array, points: Array, anchors: Array | None, steps: int) -> Array:
    """Move points to where they stay, with respect to anchors or to one another."""
    for _ in range(steps):
        # going twice as far takes half the steps; the last step, a single one, sets the scale right
        points = 2 * _step(distances, points, points if anchors is None else anchors) - points
    return _step(distances, points, points if anchors is None else anchors)


def _step(distances: Array, points: Array, anchors: Array) -> Array:
    distance = apart(points, anchors)
    # a point that stands on an anchor has no direction to go from it
    ratio = np.divide(distances, distance, out=np.zeros_like(distance), where=distance > 0)
    moved: Array = ratio.sum(axis=1, keepdims=True) * points - ratio @ anchors
    moved /= len(anchors)
    moved += anchors.mean(axis=0)
    return moved


def _classical(distances: Floats, dimensions: int) -> Floats:
    """Place points by the eigenvectors of their scalar products, as the distances would imply them."""
    squares = distances**2
    products = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(products)
    widest = slice(-1, -dimensions - 1, -1)
    points: Floats = vectors[:, widest] * np.sqrt(np.maximum(values[widest], 0))
    return points


def _principal(points: Array) -> Floats:
    centred = points - points.mean(axis=0)
    _, spread, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes[spread >= _NEGLIGIBLE * spread[0]].T
    # an axis may point either way: let its farthest point be on the positive side
    farthest = np.abs(turned).argmax(axis=0)
    signs = np.sign(turned[farthest, np.arange(turned.shape[1])])
    result: Floats = turned * np.where(signs == 0, 1, signs)
    return result


def _start(distances: Array, anchors: Floats) -> Floats:
    """Solve for the points linearly: differences of squared distances are linear in them."""
    centre = anchors.mean(axis=0)
    centred = anchors - centre
    lengths, squares = (centred**2).sum(axis=1), distances.astype(np.float64) ** 2
    known = lengths - lengths.mean() - squares + squares.mean(axis=1, keepdims=True)
    points: Floats = 0.5 * known @ np.linalg.pinv(centred, rcond=_WEAK).T + centre
    return points
