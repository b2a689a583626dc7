"""What every distance of designs has in common."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arch.random_cards import random_card

from formwright.arch.alignment import Alignment
from formwright.arch.card import Card
from formwright.arch.distance import Distance
from formwright.arch.edit_distance import EditDistance
from formwright.core.rng import derive
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

KINDS: tuple[type[Distance], ...] = (EditDistance, Alignment)
LONG = ("autobert-zero",)  # takes two seconds to draw from for the first time
SLOW = (pytest.mark.slow,)
every_kind = pytest.mark.parametrize("kind", KINDS)


def sampled(name: str, seed: int, number: int) -> list[Card]:
    space, rng = load_space(name), derive(seed, "sampled")
    return [space.card(space.sample(rng, "gene")) for _ in range(number)]


def check_metric(kind: type[Distance], cards: list[Card]) -> None:
    matrix = kind.of(cards).between(cards, cards)
    assert matrix.dtype == np.float32
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix, matrix.T)
    assert not np.diag(matrix).any()
    assert (matrix >= 0).all()
    detours = matrix[:, :, None] + matrix[None, :, :]  # (from, by way of, to)
    assert (matrix[:, None, :] <= detours * (1 + 1e-6)).all()


@every_kind
@given(st.sampled_from(["flexibert", "flexibert-nano", "flexibert-s1star"]), st.integers(0, 10**9))
def test_it_is_a_metric_on_flexibert(kind: type[Distance], name: str, seed: int) -> None:
    check_metric(kind, sampled(name, seed, 8))


@every_kind
@given(st.integers(0, 10**9))
def test_it_is_a_metric_on_random_designs_of_all_families(kind: type[Distance], seed: int) -> None:
    rng = derive(seed, "families")
    check_metric(kind, [random_card(rng) for _ in range(6)])


@every_kind
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW if name in LONG else ()) for name in SPACES.names()])
def test_it_is_a_metric_that_tells_designs_of_every_space_apart(kind: type[Distance], name: str) -> None:
    cards = sampled(name, 0, 12)
    check_metric(kind, cards)
    assert kind.of(cards).between(cards, cards).mean() > 1


@every_kind
def test_published_compressed_designs_have_distances(kind: type[Distance]) -> None:
    cards = [load_card(name) for name in CARDS.names() if name.startswith("eftnas")]
    check_metric(kind, cards)
    assert (kind.of(cards).between(cards, cards) + np.eye(len(cards)) > 0).all()


@every_kind
def test_pairs_and_parts_of_the_matrix_agree_with_the_whole(kind: type[Distance]) -> None:
    cards = sampled("flexibert-s1star", 1, 60)
    distance = kind.of(cards)
    whole = distance.between(cards, cards)
    left, right = derive(0, "pairs").integers(len(cards), size=(2, 500))
    assert np.array_equal(distance.pairs(cards, left, right), whole[left, right])
    assert np.array_equal(distance.between(cards[7:20], cards[50:]), whole[7:20, 50:])


@every_kind
@pytest.mark.parametrize("name", ["autobert-zero-nano", "evolved-transformer-nano", "hat"])
def test_cutting_the_work_into_small_parts_changes_nothing(
    kind: type[Distance], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = sampled(name, 2, 14)
    distance = kind.of(cards)
    left, right = derive(1, "pairs").integers(len(cards), size=(2, 30))
    whole, pairs = distance.between(cards, cards), distance.pairs(cards, left, right)
    assert np.array_equal(pairs, whole[left, right])
    module = sys.modules[kind.__module__]
    for limit, value in {"_PAGE": 20, "_STRIP": 2, "_CHUNK": 7}.items():
        monkeypatch.setattr(module, limit, value, raising=kind is Alignment or limit == "_CHUNK")
    assert np.array_equal(distance.between(cards, cards), whole)
    assert np.array_equal(distance.pairs(cards, left, right), pairs)


@every_kind
def test_designs_unlike_those_it_was_made_of_are_measured_too(kind: type[Distance]) -> None:
    known, others = sampled("flexibert-nano", 3, 30), sampled("autobert-zero-nano", 3, 5)
    matrix = kind.of(known).between(others, known)
    assert matrix.shape == (5, 30)
    assert np.isfinite(matrix).all()
    assert (matrix > 0).all()


@every_kind
def test_nothing_has_no_distances(kind: type[Distance]) -> None:
    cards = sampled("flexibert-nano", 4, 3)
    distance, nothing = kind.of(cards), np.array([], np.intp)
    assert distance.between([], cards).shape == (0, 3)
    assert distance.between(cards, []).shape == (3, 0)
    assert distance.between([], []).shape == (0, 0)
    assert distance.pairs(cards, nothing, nothing).shape == (0,)
