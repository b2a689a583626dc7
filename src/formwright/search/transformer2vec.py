"""Transformer2vec: points for designs, so that Euclidean distance follows a distance of designs (FlexiBERT, 3.3.2).

Few designs of a space, the landmarks, are arranged by least squares over all their pairs, as in the paper; every other
design is placed by least squares over its distances to the landmarks. So a design needs not be known beforehand, the
space may be too large to list, and no matrix of all pairs is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from formwright.arch.card import Card
from formwright.arch.distance import Distance
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.options import at_least, check
from formwright.search.stress import Floats, arrange, place

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
        check(at_least(1, dimensions=dimensions, landmarks=landmarks))
        if not cards:
            raise IllegalInput("there is no design to make landmarks of.")
        rows = np.sort(derive(0, "landmarks").permutation(len(cards))[:landmarks])
        chosen = tuple(cards[row] for row in rows)
        return cls(distance, chosen, arrange(distance.between(chosen, chosen), dimensions))

    def points(self, cards: Sequence[Card]) -> Floats:
        """Return the points of any designs, those of the space or others."""
        chunks = [cards[first : first + _CARDS] for first in range(0, len(cards), _CARDS)]
        found = [place(self.distance.between(chunk, self.landmarks), self.anchors) for chunk in chunks]
        return np.concatenate([np.empty((0, self.anchors.shape[1])), *found])
