"""Neighbours of a design, as those from which it may take weights are ranked (FlexiBERT, section 3.3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from formwright.arch.card import Card
from formwright.arch.overlap import biased_overlap
from formwright.search.listing import Floats, Listing, listing
from formwright.space import Space

MOST = 100


@dataclass(frozen=True)
class Neighbour:
    """Name a listed design by its row, with the layers it shares with the query and its distance by embedding."""

    row: int
    overlap: int
    distance: float


def neighbours(listed: Listing, card: Card, point: Floats, most: int = MOST) -> list[Neighbour]:
    """Return the listed designs nearest to a card at a point, those that share more leading layers first.

    Of equal overlaps the nearer comes first. The card itself is no neighbour of its own.
    """
    distances = np.linalg.norm(listed.points - point, axis=1)
    if card.digest in listed.row:
        distances[listed.row[card.digest]] = np.inf
    nearest = [row for row in np.argsort(distances, kind="stable")[:most] if np.isfinite(distances[row])]
    found = [Neighbour(int(row), biased_overlap(card, listed.cards[row]), float(distances[row])) for row in nearest]
    return sorted(found, key=lambda one: (-one.overlap, one.distance))


@dataclass(frozen=True)
class Nearness:
    """Give the distance by embedding of two cards of a space, infinite where they are no neighbours.

    `other` is a neighbour of `card` when fewer than `most` designs of the space, or of the pool that stands for a space
    too large to list, are nearer to the card; where `most` is None every card is a neighbour. `coordinates`
    are those of `listing`. Points are computed at the first call.
    """

    space: Space
    most: int | None = MOST
    coordinates: str = "transformer2vec"

    def __call__(self, card: Card, other: Card) -> float:
        """Return the distance of another card."""
        listed = listing(self.space, self.coordinates)
        point, theirs = listed.points_of([None, None], [card, other])
        distances = np.linalg.norm(np.vstack((listed.points, theirs)) - point, axis=1)
        distance = float(distances[-1])
        # the card itself stands in the list as well, at no distance
        nearer = np.count_nonzero(distances < distance) - (card.digest in listed.row and distance > 0)
        return distance if self.most is None or nearer < self.most else math.inf
