from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from formwright.arch.alignment import Alignment
from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.search.faithfulness import compare, faithfulness
from formwright.search.transformer2vec import Transformer2vec
from formwright.testing.spaces import small

# few different numbers, so that ties are common
VALUES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=40).filter(
    lambda rows: all(len(set(column)) > 1 for column in zip(*rows, strict=True))
)


def cards() -> list[Card]:
    space = small()
    return [space.card(design) for design in space.enumerate()]


def embedded(number: int) -> Transformer2vec:
    return Transformer2vec.of(cards(), Alignment.of(cards()), landmarks=number)


@given(VALUES)
def test_ranks_agree_as_scipy_says(rows: list[tuple[int, int]]) -> None:
    found, given_ = np.array(rows, dtype=float).T
    assert compare(found, given_).spearman == pytest.approx(spearmanr(found, given_).statistic)


def test_stress_is_the_error_as_a_share_of_the_distances() -> None:
    given_ = np.array([3.0, 4.0, 0.0])
    assert compare(given_, given_).stress == 0
    assert compare(np.array([3.0, 4.0, 2.5]), given_).stress == pytest.approx(0.5)
    assert compare(2 * given_, given_).stress == pytest.approx(1)


def test_more_landmarks_serve_better_and_anchors_at_random_badly() -> None:
    few, many = (faithfulness(embedded(number), cards(), 5_000) for number in (8, 80))
    assert many.stress < few.stress
    assert few.spearman < many.spearman
    good = embedded(80)
    shuffled = replace(good, anchors=np.random.default_rng(0).permutation(good.anchors))
    bad = faithfulness(shuffled, cards(), 5_000)
    assert bad.stress > 2 * many.stress
    assert bad.spearman < many.spearman


def test_landmarks_are_not_judged_by() -> None:
    embedding = embedded(40)
    with pytest.raises(IllegalInput, match="fewer than two designs are no landmarks"):
        faithfulness(embedding, [*embedding.landmarks, next(c for c in cards() if c not in embedding.landmarks)])
