"""How well an embedding keeps distances, on held-out pairs of designs, and how many dimensions it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.listing import Array, Floats, Transformer2vec

PAIRS = 50_000


@dataclass(frozen=True)
class Faithfulness:
    """Compare Euclidean distances of points with the distances of their designs.

    `stress` is the root of the sum of squared errors, as a share of that of the squared distances; `spearman` is the
    rank correlation.
    """

    stress: float
    spearman: float


def faithfulness(embedding: Transformer2vec, cards: Sequence[Card], pairs: int = PAIRS) -> Faithfulness:
    """Judge an embedding on random pairs of cards, none of them a landmark and no design paired with itself."""
    landmarks = {card.digest for card in embedding.landmarks}
    others = [card for card in cards if card.digest not in landmarks]
    if len(others) < 2:
        raise IllegalInput("fewer than two designs are no landmarks: there is no pair to judge by.")
    rng = derive(0, "faithfulness")
    left = rng.integers(len(others), size=pairs)
    right = (left + rng.integers(1, len(others), size=pairs)) % len(others)
    points = embedding.points(others)
    found = np.linalg.norm(points[left] - points[right], axis=1)
    return compare(found, embedding.distance.pairs(others, left, right).astype(np.float64))


def compare(found: Floats, given: Floats) -> Faithfulness:
    """Compare distances found with those given."""
    stress = np.linalg.norm(found - given) / (np.linalg.norm(given) or 1.0)
    return Faithfulness(float(stress), float(np.corrcoef(_ranks(found), _ranks(given))[0, 1]))


def _ranks(values: Array) -> NDArray[np.float64]:
    """Give each value its place from the smallest; equal ones share the mean of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


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
