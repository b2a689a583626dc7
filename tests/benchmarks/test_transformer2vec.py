from dataclasses import replace

import numpy as np
import pytest
from benchmarks.transformer2vec_kit.faithfulness import compare, faithfulness, knee
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from formwright.arch.card import Card
from formwright.arch.distance import Alignment
from formwright.core.errors import IllegalInput
from formwright.search.listing import Transformer2vec
from formwright.testing.toy_problem import small


def test_the_knee_is_where_further_dimensions_stop_to_pay() -> None:
    assert knee({2: 0.30, 4: 0.20, 8: 0.12, 16: 0.05, 24: 0.049, 32: 0.048}) == 16
    assert knee({32: 0.048, 2: 0.30, 16: 0.25, 8: 0.26, 4: 0.05, 24: 0.049}) == 4


@given(st.dictionaries(st.integers(1, 64), st.floats(0, 1), min_size=1), st.floats(0.1, 100))
def test_the_knee_is_one_of_the_numbers_and_knows_no_unit(errors: dict[int, float], unit: float) -> None:
    rounded = {number: round(error, 3) for number, error in errors.items()}
    found = knee(rounded)
    assert found in rounded
    line = {number: _line(rounded, number) for number in rounded}
    scaled = knee({number: unit * error for number, error in rounded.items()})
    assert line[scaled] - rounded[scaled] == pytest.approx(line[found] - rounded[found], abs=1e-9)


def _line(errors: dict[int, float], number: int) -> float:
    first, last = min(errors), max(errors)
    share = (number - first) / (last - first) if last > first else 0.0
    return errors[first] + share * (errors[last] - errors[first])


def test_knees_of_curves() -> None:
    assert knee({2: 0.4, 4: 0.3, 6: 0.2}) == 6
    assert knee({2: 0.4, 4: 0.4, 6: 0.4}) == 2
    assert knee({2: 0.4, 3: 0.39, 4: 0.2}) == 4
    assert knee({7: 0.1}) == 7
    with pytest.raises(IllegalInput, match="has no knee"):
        knee({})


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
