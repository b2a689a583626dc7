import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance, biased_overlap, overlap_fraction
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search import listing as module
from formwright.search.listing import (
    MOST,
    Floats,
    Nearness,
    Transformer2vec,
    apart,
    arrange,
    listing,
    neighbours,
    place_by_distances,
)
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


@pytest.mark.usefixtures("pool")
def test_a_design_that_is_not_listed_has_neighbours() -> None:
    space = large()
    listed = listing(space)
    card = space.card(space.sample(derive(1, "elsewhere"), "gene"))
    assert card.digest not in listed.row
    assert len(neighbours(listed, card, listed.points_of([None], [card])[0], most=7)) == 7


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


SEEDS = st.integers(0, 1_000)


def cloud(seed: int, number: int, dimensions: int) -> Floats:
    return 10 * derive(seed, "cloud").standard_normal((number, dimensions))


def stress(points: Floats, distances: Floats) -> float:
    return float(((cdist(points, points) - distances) ** 2).sum())


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4))
def test_points_that_exist_are_found_again_and_further_ones_placed(seed: int, dimensions: int) -> None:
    distances = cdist(*[cloud(seed, 12, dimensions)] * 2)
    points = arrange(distances, dimensions)
    assert points.shape == (12, dimensions)
    assert np.allclose(cdist(points, points), distances, atol=1e-6)
    points = cloud(seed, 70, dimensions)
    found = place_by_distances(cdist(points[40:], points[:40]), points[:40])
    assert np.allclose(found, points[40:], atol=1e-2)


def test_axes_that_hold_nothing_are_left_out() -> None:
    line = np.arange(12.0)[:, None]
    points = arrange(cdist(line, line), 5)
    assert points.shape == (12, 1)
    assert points[:, 0] == pytest.approx(np.arange(12) - 5.5) or points[:, 0] == pytest.approx(5.5 - np.arange(12))


@settings(max_examples=20)
@given(SEEDS)
def test_points_lie_along_their_principal_axes_the_widest_first(seed: int) -> None:
    points = arrange(cdist(*[cloud(seed, 12, 6)] * 2, "cityblock"), 4)
    spread = points.T @ points
    assert np.allclose(points.mean(axis=0), 0, atol=1e-6)
    assert np.allclose(spread, np.diag(np.diag(spread)), atol=1e-6 * spread.max())
    assert (np.diff(np.diag(spread)) <= 0).all()
    assert (points[np.abs(points).argmax(axis=0), range(4)] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_of_squares_is_as_small_as_a_general_minimiser_gets_it(seed: int) -> None:
    distances = cdist(*[cloud(seed, 40, 8)] * 2, "cityblock")
    points = arrange(distances, 3)

    def worth(flat: Floats) -> tuple[float, Floats]:
        moved = flat.reshape(points.shape)
        between = cdist(moved, moved)
        ratio = np.divide(between - distances, between, out=np.zeros_like(between), where=between > 0)
        return ((between - distances) ** 2).sum(), 4 * (ratio.sum(axis=1)[:, None] * moved - ratio @ moved).ravel()

    best = minimize(worth, points.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2_000}).fun
    assert best <= stress(points, distances) < 1.01 * best


@pytest.mark.parametrize("seed", range(5))
def test_a_placed_point_is_where_no_move_makes_its_sum_smaller(seed: int) -> None:
    points = cloud(seed, 61, 8)
    distances = cdist(points, points, "cityblock")
    anchors = arrange(distances[:60, :60], 3)
    here = place_by_distances(distances[60:, :60], anchors)

    def worth(there: Floats) -> float:
        return float(((cdist(there[None], anchors) - distances[60:, :60]) ** 2).sum())

    best = minimize(worth, here[0]).fun
    assert best <= worth(here[0]) < 1.01 * best


def test_an_anchor_is_placed_on_itself() -> None:
    distances = cdist(*[cloud(0, 50, 6)] * 2, "cityblock")
    anchors = arrange(distances, 4)
    assert np.abs(place_by_distances(distances, anchors) - anchors).max() < 0.05 * anchors.std()


def test_a_point_is_the_same_alone_and_among_many() -> None:
    points = cloud(1, 700, 5)
    distances = cdist(points, points[:50], "cityblock")
    anchors = arrange(distances[:50], 3)
    together = place_by_distances(distances, anchors)
    for row in (0, 255, 256, 699):
        assert np.allclose(place_by_distances(distances[row : row + 1], anchors), together[row], atol=1e-2)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_points_that_are_not_apart_coincide(number: int) -> None:
    nothing = np.zeros((number, number))
    points = arrange(nothing, 4)
    assert len(points) == number
    assert not points.any()
    assert not place_by_distances(nothing, points).any()


def test_nothing_is_placed_nowhere() -> None:
    assert place_by_distances(np.zeros((0, 5)), cloud(0, 5, 2)).shape == (0, 2)


@given(SEEDS)
def test_euclidean_distances_are_scipys(seed: int) -> None:
    points, others = cloud(seed, 9, 3), cloud(seed + 1, 4, 3)
    assert np.allclose(apart(points, others), cdist(points, others))
    assert np.allclose(apart(points, points), cdist(points, points), atol=1e-5)


KINDS = pytest.mark.parametrize("kind", [EditDistance, Alignment])


def all_cards(space: Space) -> list[Card]:
    return [space.card(design) for design in space.enumerate()]


def drawn(space: Space, seed: int, number: int) -> list[Card]:
    rng = derive(seed, "cards")
    return [space.card(space.sample(rng, "gene")) for _ in range(number)]


def agreement(embedding: Transformer2vec, cards: list[Card], number: int = 20_000) -> float:
    """Correlate, by rank, both distances of pairs of which neither is a landmark."""
    landmarks = set(embedding.landmarks)
    cards = [card for card in cards if card not in landmarks]
    left, right = derive(0, "pairs").integers(len(cards), size=(2, number))
    left, right = left[left != right], right[left != right]
    points = embedding.points(cards)
    found = np.linalg.norm(points[left] - points[right], axis=1)
    return float(spearmanr(found, embedding.distance.pairs(cards, left, right)).statistic)


@KINDS
def test_distances_of_points_follow_those_of_designs_that_nobody_fitted(kind: type[Distance]) -> None:
    cards = all_cards(small())
    embedding = Transformer2vec.of(cards, kind.of(cards), landmarks=100)
    assert agreement(embedding, cards) > 0.95


@KINDS
def test_designs_of_a_space_too_large_to_list_are_placed(kind: type[Distance]) -> None:
    space = large()
    sample = drawn(space, 0, 120)
    embedding = Transformer2vec.of(sample, kind.of(sample))
    assert agreement(embedding, drawn(space, 1, 150), 5_000) > 0.95


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", ["flexibert-nano", pytest.param("flexibert", marks=pytest.mark.long)])
def test_the_whole_of_flexibert_is_embedded_in_seconds(name: str, kind: type[Distance]) -> None:
    cards = all_cards(load_space(name))
    started = time.process_time()
    embedding = Transformer2vec.of(cards, kind.of(cards))
    points = embedding.points(cards)
    assert time.process_time() - started < 15
    assert len(points) == 9_312
    assert agreement(embedding, cards) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [
        ("flexibert-s1star", EditDistance, 0.98),
        pytest.param("flexibert-s1star", Alignment, 0.95, marks=pytest.mark.long),
        pytest.param("autobert-zero", EditDistance, 0.99, marks=pytest.mark.long),
        pytest.param("autobert-zero", Alignment, 0.9, marks=pytest.mark.long),
    ],
)
def test_designs_of_published_spaces_nobody_could_list_are_placed(
    name: str, kind: type[Distance], least: float
) -> None:
    space = load_space(name)
    sample = drawn(space, 0, 300)
    embedding = Transformer2vec.of(sample, kind.of(sample))
    assert agreement(embedding, drawn(space, 1, 400)) > least


def test_the_same_cards_get_the_same_points_whatever_else_was_drawn() -> None:
    cards = all_cards(small())
    points = []
    for _ in range(2):
        points.append(Transformer2vec.of(cards, EditDistance.of(cards), landmarks=64).points(cards))
        np.random.random()  # the global generator must make no difference
    assert np.array_equal(*points)


def test_dimensions_are_at_most_what_was_asked_for() -> None:
    cards = all_cards(small())
    distance = Alignment.of(cards)
    for asked in (1, 3, 7):
        embedding = Transformer2vec.of(cards, distance, dimensions=asked, landmarks=50)
        assert embedding.anchors.shape == (50, asked)
        assert embedding.points(cards[:3]).shape == (3, asked)
    assert Transformer2vec.of(cards, distance, dimensions=100, landmarks=60).anchors.shape[1] < 60


def test_landmarks_are_different_cards_of_the_space() -> None:
    cards = all_cards(small())
    embedding = Transformer2vec.of(cards, EditDistance.of(cards), landmarks=40)
    assert len(set(embedding.landmarks)) == 40
    assert set(embedding.landmarks) < set(cards)
    cards = all_cards(tiny())
    embedding = Transformer2vec.of(cards, Alignment.of(cards))
    assert set(embedding.landmarks) == set(cards)
    points = embedding.points(cards)
    assert points.shape[1] <= 11
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert spearmanr(distances.ravel(), embedding.distance.between(cards, cards).ravel()).statistic > 0.95


def test_one_card_none_and_what_cannot_be_arranged() -> None:
    cards = all_cards(tiny())[:1]
    assert Transformer2vec.of(cards, EditDistance.of(cards)).points(cards).tolist() == [[0.0]]
    cards = all_cards(tiny())
    embedding = Transformer2vec.of(cards, Alignment.of(cards), dimensions=3)
    assert embedding.points([]).shape == (0, 3)
    cards = all_cards(tiny())
    distance = EditDistance.of(cards)
    with pytest.raises(IllegalInput, match="no design to make landmarks of"):
        Transformer2vec.of([], distance)
