import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.transformer2vec import Floats, Transformer2vec, apart, arrange, place
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.toy_problem import large, small, tiny

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
    found = place(cdist(points[40:], points[:40]), points[:40])
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
    here = place(distances[60:, :60], anchors)

    def worth(there: Floats) -> float:
        return float(((cdist(there[None], anchors) - distances[60:, :60]) ** 2).sum())

    best = minimize(worth, here[0]).fun
    assert best <= worth(here[0]) < 1.01 * best


def test_an_anchor_is_placed_on_itself() -> None:
    distances = cdist(*[cloud(0, 50, 6)] * 2, "cityblock")
    anchors = arrange(distances, 4)
    assert np.abs(place(distances, anchors) - anchors).max() < 0.05 * anchors.std()


def test_a_point_is_the_same_alone_and_among_many() -> None:
    points = cloud(1, 700, 5)
    distances = cdist(points, points[:50], "cityblock")
    anchors = arrange(distances[:50], 3)
    together = place(distances, anchors)
    for row in (0, 255, 256, 699):
        assert np.allclose(place(distances[row : row + 1], anchors), together[row], atol=1e-2)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_points_that_are_not_apart_coincide(number: int) -> None:
    nothing = np.zeros((number, number))
    points = arrange(nothing, 4)
    assert len(points) == number
    assert not points.any()
    assert not place(nothing, points).any()


def test_nothing_is_placed_nowhere() -> None:
    assert place(np.zeros((0, 5)), cloud(0, 5, 2)).shape == (0, 2)


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
