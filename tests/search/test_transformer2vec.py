import time

import numpy as np
import pytest
from scipy.stats import spearmanr

from formwright.arch.alignment import Alignment
from formwright.arch.card import Card
from formwright.arch.distance import Distance
from formwright.arch.edit_distance import EditDistance
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.transformer2vec import Transformer2vec
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.spaces import large, small, tiny

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


def test_a_space_of_a_dozen_designs_is_all_landmarks() -> None:
    cards = all_cards(tiny())
    embedding = Transformer2vec.of(cards, Alignment.of(cards))
    assert set(embedding.landmarks) == set(cards)
    points = embedding.points(cards)
    assert points.shape[1] <= 11
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert spearmanr(distances.ravel(), embedding.distance.between(cards, cards).ravel()).statistic > 0.95


def test_a_single_design_has_a_point() -> None:
    cards = all_cards(tiny())[:1]
    assert Transformer2vec.of(cards, EditDistance.of(cards)).points(cards).tolist() == [[0.0]]


def test_no_cards_have_no_points() -> None:
    cards = all_cards(tiny())
    embedding = Transformer2vec.of(cards, Alignment.of(cards), dimensions=3)
    assert embedding.points([]).shape == (0, 3)


def test_what_cannot_be_arranged_is_refused() -> None:
    cards = all_cards(tiny())
    distance = EditDistance.of(cards)
    with pytest.raises(IllegalInput, match=r"dimensions is 0.*landmarks is -1"):
        Transformer2vec.of(cards, distance, dimensions=0, landmarks=-1)
    with pytest.raises(IllegalInput, match="no design to make landmarks of"):
        Transformer2vec.of([], distance)
