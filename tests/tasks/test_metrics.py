import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from formwright.core.errors import IllegalInput, UnknownName
from formwright.tasks.metrics import (
    METRICS,
    accuracy,
    f1,
    matthews,
    metric,
    pearson,
    perplexity,
    spearman,
    without_writing,
)


def rows(element: st.SearchStrategy) -> st.SearchStrategy:
    return st.integers(2, 40).flatmap(
        lambda size: st.tuples(
            st.lists(element, min_size=size, max_size=size), st.lists(element, min_size=size, max_size=size)
        )
    )


BINARY, LABELS = rows(st.integers(0, 1)), rows(st.integers(0, 3))
SCORES = rows(st.integers(-20, 20).map(lambda value: value / 4))


@given(LABELS)
def test_accuracy(pair) -> None:
    assert accuracy(*pair) == pytest.approx(oracle.accuracy_score(pair[1], pair[0]))


@given(BINARY)
def test_f1(pair) -> None:
    assert f1(*pair) == pytest.approx(oracle.f1_score(pair[1], pair[0], zero_division=0.0))


@given(LABELS)
def test_matthews_of_any_number_of_labels(pair) -> None:
    if len(set(pair[0]) | set(pair[1])) == 1:  # the oracle warns, and then gives 0
        assert matthews(*pair) == 0.0
    else:
        assert matthews(*pair) == pytest.approx(oracle.matthews_corrcoef(pair[1], pair[0]), abs=1e-12)


@given(SCORES)
def test_pearson_and_spearman_with_ties(pair) -> None:
    if len(set(pair[0])) == 1 or len(set(pair[1])) == 1:
        assert pearson(*pair) == spearman(*pair) == 0.0
    else:
        assert pearson(*pair) == pytest.approx(stats.pearsonr(*pair).statistic, abs=1e-9)
        assert spearman(*pair) == pytest.approx(stats.spearmanr(*pair).statistic, abs=1e-9)


def test_correlation_of_small_numbers_and_of_constants_that_rounding_moves() -> None:
    assert pearson([1e-9, 2e-9, 3e-9], [1, 2, 3]) == pytest.approx(1.0)
    assert pearson([0.1] * 7, range(7)) == 0.0


def test_perplexity_weighs_means_by_their_tokens() -> None:
    probabilities = np.array([0.5, 0.25, 0.125, 0.1])
    losses = -np.log(probabilities)
    expected = np.prod(probabilities) ** (-1 / 4)
    assert perplexity([losses[:3].mean(), losses[3]], [3, 1]) == pytest.approx(expected)


def test_perplexity_alone_is_better_when_it_is_lower() -> None:
    assert [name for name, found in METRICS.items() if found.direction == "min"] == ["perplexity"]


@pytest.mark.parametrize(("predictions", "truth"), [([], []), ([1, 2], [1]), ([[1]], [[1]])])
def test_values_that_do_not_pair_are_refused(predictions, truth) -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        accuracy(predictions, truth)


def test_answers_in_words_have_metrics_too() -> None:
    assert metric("exact").compute(["the cat", "dog"], [("Cat!",), ("a dog house",)]) == 0.5
    assert metric("span-f1").compute(["the cat", "dog"], [("Cat!",), ("a dog house",)]) == pytest.approx(
        (1 + 2 / 3) / 2
    )


def test_an_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'matthews'"):
        metric("mathews")


def test_metrics_of_written_texts_can_be_left_out() -> None:
    names = ("perplexity", "bleu", "same-text")
    assert without_writing(names, ()) == ("perplexity",)
    assert without_writing(names, ("bleu", "params")) == ("perplexity", "bleu")
