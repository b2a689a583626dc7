import math

import numpy as np
import pytest

from formwright.arch.overlap import biased_overlap, overlap_fraction
from formwright.core.rng import derive
from formwright.search import listing as module
from formwright.search.listing import listing
from formwright.search.neighbours import MOST, Nearness, neighbours
from formwright.testing.spaces import large, small, tiny

COORDINATES = pytest.mark.parametrize("name", ["transformer2vec", "transformer2vec-ordered"])


@COORDINATES
@pytest.mark.parametrize("row", [0, 200, 341])
def test_the_nearest_are_ranked_by_shared_layers_and_then_by_distance(row: int, name: str) -> None:
    listed = listing(small(), name)
    found = neighbours(listed, listed.cards[row], listed.points[row])
    distances = np.linalg.norm(listed.points - listed.points[row], axis=1)
    assert len({one.row for one in found}) == len(found) == MOST
    assert row not in [one.row for one in found]
    others = np.delete(distances, [row, *(one.row for one in found)])
    assert max(one.distance for one in found) <= others.min()
    assert [(one.overlap, one.distance) for one in found] == [
        (biased_overlap(listed.cards[row], listed.cards[one.row]), pytest.approx(distances[one.row])) for one in found
    ]
    ranks = [(-one.overlap, one.distance) for one in found]
    assert ranks == sorted(ranks)
    assert len({one.overlap for one in found}) > 1


def test_a_small_space_has_no_more_neighbours_than_other_designs() -> None:
    listed = listing(tiny())
    assert len(neighbours(listed, listed.cards[3], listed.points[3])) == 11


def test_a_design_that_is_not_listed_has_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    module._listing.cache_clear()
    monkeypatch.setattr(module, "POOL", 200)
    space = large()
    listed = listing(space)
    card = space.card(space.sample(derive(1, "elsewhere"), "gene"))
    assert card.digest not in listed.row
    found = neighbours(listed, card, listed.points_of([None], [card])[0], most=7)
    assert len(found) == 7
    module._listing.cache_clear()


@COORDINATES
def test_those_from_which_weights_may_come_are_the_first(name: str) -> None:
    listed = listing(small(), name)
    card = next(card for card in listed.cards if len(card.stacks[0].layers) == 1)
    found = neighbours(listed, card, listed.points[listed.row[card.digest]], most=len(listed.cards))
    shares = [overlap_fraction(card, listed.cards[one.row]) for one in found]
    sharing = sum(share >= 0.8 for share in shares)
    assert sharing == 18  # the two-layer designs that begin with this layer
    assert all(share >= 0.8 for share in shares[:sharing])


@COORDINATES
@pytest.mark.parametrize("row", [0, 111, 341])
def test_cards_beyond_the_nearest_are_infinitely_far(row: int, name: str) -> None:
    listed = listing(small(), name)
    card, nearness = listed.cards[row], Nearness(small(), 20, name)
    given = {other: nearness(card, listed.cards[other]) for other in range(len(listed.cards))}
    near = {one.row: one.distance for one in neighbours(listed, card, listed.points[row], most=20)}
    assert given[row] == 0
    for other, distance in near.items():
        assert given[other] == pytest.approx(distance)
    farthest = max(near.values())
    for other in given.keys() - near.keys() - {row}:
        # as far as the farthest neighbour, or no neighbour
        assert given[other] == math.inf or given[other] == pytest.approx(farthest, rel=1e-3)


@COORDINATES
def test_without_a_limit_every_card_is_at_some_distance(name: str) -> None:
    listed, nearness = listing(small(), name), Nearness(small(), None, name)
    found = [nearness(listed.cards[5], other) for other in listed.cards]
    assert found == pytest.approx(np.linalg.norm(listed.points - listed.points[5], axis=1))
