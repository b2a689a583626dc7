"""The designs of a space with their coordinates, and nearest neighbours by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance, biased_overlap
from formwright.core.rng import derive
from formwright.search.proposals import listable
from formwright.search.transformer2vec import Transformer2vec
from formwright.space import Space

Floats = NDArray[np.float64]
Coordinates = Literal["transformer2vec", "transformer2vec-ordered", "one-hot"]
Place = Callable[[Sequence[Any], Sequence[Card]], Floats]
POOL = 4_096
_FEW = 32
_DISTANCES: dict[str, type[Distance]] = {"transformer2vec": EditDistance, "transformer2vec-ordered": Alignment}


@dataclass(frozen=True, eq=False)
class Listing:
    """Hold designs, their cards and their points; `whole` says whether these are all designs of the space.

    `place` gives the points of designs that are not listed; `row` finds a card by its digest.
    """

    designs: tuple[Any, ...]
    cards: tuple[Card, ...]
    points: Floats
    place: Place
    whole: bool
    row: dict[str, int]

    def points_of(self, designs: Sequence[Any], cards: Sequence[Card]) -> Floats:
        rows = [self.row.get(card.digest, -1) for card in cards]
        found = self.points[rows]
        absent = [index for index, row in enumerate(rows) if row < 0]
        if absent:
            found[absent] = self.place([designs[i] for i in absent], [cards[i] for i in absent])
        return found


def listing(space: Space, coordinates: str = "transformer2vec") -> Listing:
    """List a space with the points of its designs: all of them, or a fixed random pool where they are too many.

    Points are either one-hot vectors, or embeddings that follow a distance between designs: `transformer2vec` the edit
    distance of the paper, for which designs of the same layers in another order coincide, `transformer2vec-ordered` the
    alignment of layers. Embeddings are centred and divided by one number, so that their coordinates have variance 1 on
    average and distances keep their proportions: the first coordinates vary more than the last. Embeddings need the
    layers of Formwright's cards; for cards of another class, designs have their one-hot vectors instead.
    """
    return _listing(space, coordinates)


def differ_in_layers(space: Space) -> bool:
    """Return whether a few random designs of a space have different layers: embeddings only see layers."""
    rng = derive(0, "layers", space.name)
    cards = [space.card(space.sample(rng, "gene")) for _ in range(_FEW)]
    return not foreign(cards) and bool(EditDistance.of(cards).between(cards[:1], cards).any())


def foreign(cards: Iterable[object]) -> bool:
    """Return whether any card is not a Formwright card: it has a digest and JSON data, but no layers to look at."""
    return not all(isinstance(card, Card) for card in cards)


@lru_cache(maxsize=8)
def _listing(space: Space, coordinates: str) -> Listing:
    whole, rng = listable(space), derive(0, "listing", space.name)
    drawn = space.enumerate() if whole else (space.sample(rng, "gene") for _ in range(POOL))
    pairs = [(design, space.card(design)) for design in drawn]
    if not whole:  # a draw may repeat a card
        pairs = list({card.digest: (design, card) for design, card in pairs}.values())
    designs, cards = tuple(design for design, _ in pairs), tuple(card for _, card in pairs)
    embedded = coordinates in _DISTANCES and not foreign(cards)
    place = _embedding(cards, _DISTANCES[coordinates]) if embedded else one_hot(space)
    row = {card.digest: number for number, card in enumerate(cards)}
    return Listing(designs, cards, place(designs, cards), place, whole, row)


def one_hot(space: Space) -> Place:
    def place(designs: Sequence[Any], cards: Sequence[Card]) -> Floats:
        return np.stack([space.encode(design) for design in designs])

    return place


def _embedding(cards: Sequence[Card], kind: type[Distance]) -> Place:
    embedding = Transformer2vec.of(cards, kind.of(cards))
    # the landmarks are centred and a fair sample of the space, so that they give its extent
    extent = np.sqrt((embedding.anchors**2).mean()) or 1.0

    def place(designs: Sequence[Any], cards: Sequence[Card]) -> Floats:
        # the last digits depend on how many threads multiply, and on which designs are placed at the same time
        points: Floats = embedding.points(cards) / extent
        return points.round(4)

    return place


MOST = 100


@dataclass(frozen=True)
class Neighbour:
    """Name a listed design by its row, with the layers it shares with the query and its distance by embedding."""

    row: int
    overlap: int
    distance: float


def neighbours(listed: Listing, card: Card, point: Floats, most: int = MOST) -> list[Neighbour]:
    """Return the listed designs nearest to a card at a point, those that share more leading layers first.

    Of equal overlaps the nearer comes first. A card is not its own neighbour. Cards that are not Formwright's own have
    no layers to share: they are ordered by distance alone.
    """
    distances = np.linalg.norm(listed.points - point, axis=1)
    if card.digest in listed.row:
        distances[listed.row[card.digest]] = np.inf
    nearest = [row for row in np.argsort(distances, kind="stable")[:most] if np.isfinite(distances[row])]
    shared = None if foreign([card]) else biased_overlap
    found = [
        Neighbour(int(row), shared(card, listed.cards[row]) if shared else 0, float(distances[row])) for row in nearest
    ]
    return sorted(found, key=lambda one: (-one.overlap, one.distance))


@dataclass(frozen=True)
class Nearness:
    """Return the distance by embedding of two cards of a space, infinity where they are not neighbours.

    `other` is a neighbour of `card` when fewer than `most` designs of the space, or of the pool that stands for a space
    too large to list, are nearer to the card; where `most` is None every card is a neighbour. `coordinates`
    are those of `listing`. Points are computed at the first call.
    """

    space: Space
    most: int | None = MOST
    coordinates: str = "transformer2vec"

    def __call__(self, card: Card, other: Card) -> float:
        listed = listing(self.space, self.coordinates)
        point, theirs = listed.points_of([None, None], [card, other])
        distances = np.linalg.norm(np.vstack((listed.points, theirs)) - point, axis=1)
        distance = float(distances[-1])
        # the card itself is listed as well, at distance 0
        nearer = np.count_nonzero(distances < distance) - (card.digest in listed.row and distance > 0)
        return distance if self.most is None or nearer < self.most else math.inf
