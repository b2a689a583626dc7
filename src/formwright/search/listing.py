"""The designs of a space with their coordinates, and nearest neighbours by them.

Coordinates may be those of Transformer2vec (FlexiBERT, 3.3.2), whose Euclidean distances follow a distance of designs.
A few designs of a space, the landmarks, are arranged by least squares over all their pairs, as in the paper; every
other design is placed by least squares over its distances to the landmarks. So a design need not be known beforehand,
the space may be too large to list, and no matrix of all pairs is made. The sum over pairs of (distance of the points
- given distance) squared is minimised by SMACOF (De Leeuw & Heiser 1980), none of whose steps increases it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance, biased_overlap
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.proposals import listable
from formwright.space import Space

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


def place_by_distances(distances: Array, anchors: Floats) -> Floats:
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
        found = [place_by_distances(self.distance.between(chunk, self.landmarks), self.anchors) for chunk in chunks]
        return np.concatenate([np.empty((0, self.anchors.shape[1])), *found])


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
