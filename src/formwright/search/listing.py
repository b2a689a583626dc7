"""The designs of a space with a point for each, for searchers that model the score as a function of the point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from formwright.arch.alignment import Alignment
from formwright.arch.card import Card
from formwright.arch.distance import Distance
from formwright.arch.edit_distance import EditDistance
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.transformer2vec import Transformer2vec
from formwright.search.unseen import listable
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
        """Return the points of any designs of the space, listed or not."""
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
    average and distances keep their proportions: the first coordinates vary more than the last.
    """
    if coordinates not in get_args(Coordinates):
        known = " or ".join(map(repr, get_args(Coordinates)))
        raise IllegalInput(f"coordinates is {coordinates!r}; it must be {known}.")
    return _listing(space, coordinates)


def differ_in_layers(space: Space) -> bool:
    """Tell whether designs of a space, as far as a few draws show, have different layers: embeddings see only those."""
    rng = derive(0, "layers", space.name)
    cards = [space.card(space.sample(rng, "gene")) for _ in range(_FEW)]
    return bool(EditDistance.of(cards).between(cards[:1], cards).any())


@lru_cache(maxsize=8)
def _listing(space: Space, coordinates: str) -> Listing:
    whole = listable(space)
    pairs = [(design, space.card(design)) for design in (space.enumerate() if whole else _drawn(space))]
    if not whole:  # a draw may repeat a card
        pairs = list({card.digest: (design, card) for design, card in pairs}.values())
    designs, cards = tuple(design for design, _ in pairs), tuple(card for _, card in pairs)
    place = _embedding(cards, _DISTANCES[coordinates]) if coordinates in _DISTANCES else _one_hot(space)
    row = {card.digest: number for number, card in enumerate(cards)}
    return Listing(designs, cards, place(designs, cards), place, whole, row)


def _drawn(space: Space) -> Iterator[Any]:
    rng = derive(0, "listing", space.name)
    return (space.sample(rng, "gene") for _ in range(POOL))


def _one_hot(space: Space) -> Place:
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
