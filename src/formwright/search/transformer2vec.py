"""Transformer2vec (FlexiBERT, 3.3.2): points of designs whose Euclidean distances follow a distance of designs.

A few designs of a space, the landmarks, are arranged by least squares over all their pairs, as in the paper; every
other design is placed by least squares over its distances to the landmarks. So a design need not be known beforehand,
the space may be too large to list, and no matrix of all pairs is made. The sum over pairs of (distance of the points
- given distance) squared is minimised by SMACOF (De Leeuw & Heiser 1980), none of whose steps increases it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.distance import Distance
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive

Floats = NDArray[np.float64]
Array = NDArray[np.floating[Any]]  # single or double precision, as given
_STEPS = 200
_PLACING_STEPS = 40
_ROWS = 256  # points placed at a time, so that the working set fits the processor's cache
_NEGLIGIBLE = 1e-2  # axes with less than this share of the widest spread are dropped
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
    squares: Array = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * points @ others.T
    np.maximum(squares, 0, out=squares)  # rounding may give small negative numbers
    np.sqrt(squares, out=squares)
    return squares


def _settled(distances: Array, points: Array, anchors: Array | None, steps: int) -> Array:
    """Iterate until points settle, relative to anchors or to one another."""
    for _ in range(steps):
        # over-relaxation halves the number of steps; the last plain step corrects the scale
        points = 2 * _step(distances, points, points if anchors is None else anchors) - points
    return _step(distances, points, points if anchors is None else anchors)


def _step(distances: Array, points: Array, anchors: Array) -> Array:
    distance = apart(points, anchors)
    # a point at an anchor has no direction from it
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
    # fix the sign of each axis: its farthest point is positive
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


DIMENSIONS = 16
LANDMARKS = 256
_CARDS = 4_096  # designs placed at a time, so that their distances to the landmarks stay small in memory


@dataclass(frozen=True, eq=False)
class Transformer2vec:
    """Hold the landmarks of a space and their points (landmarks, dimensions), in the distance's own unit."""

    distance: Distance
    landmarks: tuple[Card, ...]
    anchors: Floats

    @classmethod
    def of(
        cls, cards: Sequence[Card], distance: Distance, dimensions: int = DIMENSIONS, landmarks: int = LANDMARKS
    ) -> Self:
        """Arrange landmarks drawn from the cards of a space, or from a sample of them; always the same ones.

        The points have at most `dimensions` dimensions, fewer where more would not bring them nearer to the distances.
        """
        if not cards:
            raise IllegalInput("there is no design to make landmarks of.")
        rows = np.sort(derive(0, "landmarks").permutation(len(cards))[:landmarks])
        chosen = tuple(cards[row] for row in rows)
        return cls(distance, chosen, arrange(distance.between(chosen, chosen), dimensions))

    def points(self, cards: Sequence[Card]) -> Floats:
        chunks = [cards[first : first + _CARDS] for first in range(0, len(cards), _CARDS)]
        found = [place(self.distance.between(chunk, self.landmarks), self.anchors) for chunk in chunks]
        return np.concatenate([np.empty((0, self.anchors.shape[1])), *found])
