import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance, biased_overlap, overlap_fraction
from formwright.core.rng import derive
from formwright.search import listing as module
from formwright.search.listing import MOST, Nearness, listing, neighbours
from formwright.space import Choice, Record, Space
from formwright.space.zoo import load_space
from formwright.testing.toy_problem import large, small, tiny, twins


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let pools be small, and forget the listings that have one."""
    module._listing.cache_clear()
    monkeypatch.setattr(module, "POOL", 300)
    yield 300
    module._listing.cache_clear()


COORDINATES = pytest.mark.parametrize("coordinates", ["transformer2vec", "transformer2vec-ordered", "one-hot"])


@COORDINATES
@pytest.mark.parametrize("space", [tiny(), small(), twins()], ids=lambda space: str(space.name))
def test_every_design_is_listed_with_its_card_and_its_point(space: Space, coordinates: str) -> None:
    listed = listing(space, coordinates)
    assert listed.whole
    assert list(listed.designs) == list(space.enumerate())
    assert list(listed.cards) == [space.card(design) for design in listed.designs]
    assert len(listed.points) == len(listed.designs)
    assert np.isfinite(listed.points).all()
    assert all(listed.cards[row].digest == digest for digest, row in listed.row.items())


def test_one_hot_points_are_the_encoded_designs() -> None:
    listed = listing(small(), "one-hot")
    assert np.array_equal(listed.points, [small().encode(design) for design in listed.designs])


@pytest.mark.parametrize(("name", "kind"), [("transformer2vec", EditDistance), ("transformer2vec-ordered", Alignment)])
def test_points_follow_the_chosen_distance_in_proportion(name: str, kind: type[Distance]) -> None:
    listed = listing(small(), name)
    given = kind.of(listed.cards).between(listed.cards, listed.cards).astype(float).ravel()
    found = np.linalg.norm(listed.points[:, None] - listed.points, axis=2).ravel()
    scaled = found * (found @ given) / (found @ found)
    assert np.linalg.norm(scaled - given) < 0.15 * np.linalg.norm(given)
    assert spearmanr(found, given).statistic > 0.95


def test_one_number_scales_all_coordinates_to_a_mean_variance_of_one() -> None:
    points = listing(small()).points
    assert points.mean(axis=0) == pytest.approx(np.zeros(points.shape[1]), abs=0.2)
    assert (points**2).mean() == pytest.approx(1, abs=0.1)
    variances = points.var(axis=0)
    assert variances[0] > 2 * variances[-1]


def test_only_the_order_aware_distance_tells_designs_from_their_reverse() -> None:
    space = small()
    design = next(design for design in space.enumerate() if len(set(design["layers"])) == 2)
    mirrored = next(other for other in space.enumerate() if other["layers"] == design["layers"][::-1])
    for name, same in (("transformer2vec", True), ("transformer2vec-ordered", False)):
        listed = listing(space, name)
        one, two = listed.points_of([design, mirrored], [space.card(design), space.card(mirrored)])
        assert np.allclose(one, two, atol=1e-3) == same


@COORDINATES
def test_a_space_too_large_to_list_has_a_pool(coordinates: str, pool: int) -> None:
    listed = listing(large(), coordinates)
    assert not listed.whole
    assert 0.9 * pool < len(listed.designs) <= pool
    assert len(listed.row) == len(listed.designs)
    depths = [len(design["layers"]) for design in listed.designs]
    assert all(depths.count(depth) > pool / 4 for depth in (4, 8, 12))


@pytest.mark.parametrize("space", [small(), large()], ids=lambda space: str(space.name))
def test_every_card_is_built_once(space: Space, pool: int) -> None:
    built: list[Any] = []

    def build(design: Any) -> Card:
        built.append(design)
        return space.build(design)

    listed = listing(replace(space, build=build), "one-hot")
    assert len(built) == (len(listed.designs) if listed.whole else pool)


@pytest.mark.usefixtures("pool")
@COORDINATES
def test_points_of_designs_listed_or_not(coordinates: str) -> None:
    space = large()
    listed = listing(space, coordinates)
    rng = derive(3, "others")
    new = [space.sample(rng, "gene") for _ in range(5)]
    designs = [listed.designs[7], *new, listed.designs[0]]
    points = listed.points_of(designs, [space.card(design) for design in designs])
    assert np.array_equal(points[[0, -1]], listed.points[[7, 0]])
    assert np.allclose(points[1:-1], listed.place(new, [space.card(design) for design in new]))
    assert len(np.unique(points, axis=0)) == 7
    points[:] = 0  # and the listing is nobody's scratch paper
    assert listed.points[7].any()


@COORDINATES
def test_listed_designs_are_placed_on_their_points_and_none_on_none(coordinates: str) -> None:
    listed = listing(small(), coordinates)
    assert listed.points_of([], []).shape == (0, listed.points.shape[1])
    listed = listing(small(), coordinates)
    assert np.allclose(listed.place(listed.designs[40:45], listed.cards[40:45]), listed.points[40:45], atol=1e-3)


def test_a_listing_is_made_once_and_always_the_same() -> None:
    assert listing(small()) is listing(small(), "transformer2vec")
    assert listing(small(), "transformer2vec-ordered") is not listing(small())
    kept = listing(tiny()).points
    module._listing.cache_clear()
    assert np.array_equal(listing(tiny()).points, kept)


def test_designs_with_one_card_between_them_have_a_point() -> None:
    card = tiny().card(next(tiny().enumerate()))
    space = Space("one", Record.of(side=Choice(("left", "right"))), lambda design: card)
    assert not listing(space).points.any()
    assert listing(space).points.shape == (2, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("pool")
def test_a_space_without_slots_is_embedded() -> None:
    space = load_space("autobert-zero-nano")
    listed = listing(space)
    assert not listed.whole
    assert listed.points.std(axis=0)[0] > 1


EMBEDDINGS = pytest.mark.parametrize("name", ["transformer2vec", "transformer2vec-ordered"])


@EMBEDDINGS
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


@EMBEDDINGS
def test_those_from_which_weights_may_come_are_the_first(name: str) -> None:
    listed = listing(small(), name)
    card = next(card for card in listed.cards if len(card.stacks[0].layers) == 1)
    found = neighbours(listed, card, listed.points[listed.row[card.digest]], most=len(listed.cards))
    shares = [overlap_fraction(card, listed.cards[one.row]) for one in found]
    sharing = sum(share >= 0.8 for share in shares)
    assert sharing == 18  # the two-layer designs that begin with this layer
    assert all(share >= 0.8 for share in shares[:sharing])


@EMBEDDINGS
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


@EMBEDDINGS
def test_without_a_limit_every_card_is_at_some_distance(name: str) -> None:
    listed, nearness = listing(small(), name), Nearness(small(), None, name)
    found = [nearness(listed.cards[5], other) for other in listed.cards]
    assert found == pytest.approx(np.linalg.norm(listed.points - listed.points[5], axis=1))
