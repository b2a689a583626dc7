import json
import time
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.bootstrap import Difference, differences, intervals, overlap
from formwright.tasks.metrics import metric


def right(hits: np.ndarray) -> dict[str, np.ndarray]:
    """Give the table of a model that is right in some rows."""
    return {"accuracy": np.asarray(hits, float)[:, None]}


def covered(truth: float, draw) -> float:
    """Give the share of simulated data sets whose interval holds the truth."""
    found = []
    for turn in range(200):
        name, table = draw(np.random.default_rng(turn))
        low, high = intervals({name: table}, derive(0, "bootstrap"))[name]
        found.append(low <= truth <= high)
    return float(np.mean(found))


# 95 % of 200 simulations have a standard error of 1.5 %: 0.90 to 0.99 is three of them, and the bootstrap's own bias
def test_an_interval_of_accuracy_holds_the_truth_as_often_as_it_says() -> None:
    assert 0.90 <= covered(0.7, lambda rng: ("accuracy", right(rng.random(204) < 0.7)["accuracy"])) <= 0.99


@pytest.mark.slow
def test_an_interval_of_a_correlation_holds_the_truth_as_often_as_it_says() -> None:
    def drawn(rng: np.random.Generator) -> tuple[str, np.ndarray]:
        one, noise = rng.normal(size=(2, 200))
        return "pearson", metric("pearson").table(one, 0.6 * one + 0.8 * noise)

    assert 0.90 <= covered(0.6, drawn) <= 0.99


@pytest.mark.slow
def test_a_paired_interval_holds_the_truth_and_is_narrower_than_an_unpaired_one() -> None:
    held, widths = [], []
    for turn in range(200):
        rng = np.random.default_rng(turn)
        hard = rng.random(300)  # rows are hard for both models alike
        one, other = (hard < 0.75) ^ (rng.random(300) < 0.02), (hard < 0.70) ^ (rng.random(300) < 0.02)
        low, high = differences(right(one), right(other), derive(0, "bootstrap"))["accuracy"]
        held.append(low <= 0.05 * 0.96 <= high)
        widths.append(high - low)
    assert 0.90 <= np.mean(held) <= 0.99
    alone = intervals(right(one), derive(0, "bootstrap"))["accuracy"]
    assert np.mean(widths) < alone[1] - alone[0]


@pytest.mark.slow
def test_equal_models_are_told_apart_as_rarely_as_it_says() -> None:
    wrong = 0
    for turn in range(200):
        one, other = np.random.default_rng(turn).random((2, 200)) < 0.7
        low, high = differences(right(one), right(other), derive(0, "bootstrap"))["accuracy"]
        wrong += not low <= 0 <= high
    assert wrong <= 20  # 10 are expected


def test_intervals_are_those_of_the_generator_and_of_many_rows() -> None:
    hits = np.random.default_rng(0).random(5000) < 0.8
    low, high = intervals(right(hits), derive(0, "bootstrap"))["accuracy"]
    wanted = stats.norm.interval(0.95, hits.mean(), np.sqrt(hits.mean() * (1 - hits.mean()) / 5000))
    assert (low, high) == pytest.approx(wanted, abs=0.002)
    hits = np.random.default_rng(0).random(100) < 0.8
    first = intervals(right(hits), derive(0, "bootstrap"))
    np.random.default_rng().random(5)
    assert intervals(right(hits), derive(0, "bootstrap")) == first


@pytest.mark.parametrize(("hits", "ends"), [(np.ones(60), (0.95, 1.0)), (np.zeros(60), (0.0, 0.05))])
def test_a_share_that_no_row_contradicts_is_not_certain(hits: np.ndarray, ends: tuple[float, float]) -> None:
    assert intervals(right(hits), derive(0, "x"))["accuracy"] == pytest.approx(ends)


def test_only_answers_to_the_same_rows_are_compared() -> None:
    hits = np.random.default_rng(0).random(100) < 0.7
    assert differences(right(hits), right(hits), derive(0, "bootstrap"))["accuracy"] == (0.0, 0.0)
    with pytest.raises(IllegalInput):
        differences(right(np.ones(3)), right(np.ones(4)), derive(0))
    one = np.arange(204) < 130
    low, high = differences(right(one), right(np.arange(204) < 129), derive(0, "bootstrap"))["accuracy"]
    assert low <= 0 <= high
    assert Difference(1 / 204, (low, high), overlap=True).outcome == "not told apart"


@pytest.mark.parametrize(
    ("value", "interval", "both", "outcome"),
    [
        (0.2, (0.1, 0.3), False, "better"),
        (-0.2, (-0.3, -0.1), False, "worse"),
        (0.2, (0.1, 0.3), True, "not told apart"),
        (0.1, (-0.1, 0.3), False, "not told apart"),
        (0.1, (0.0, 0.3), False, "not told apart"),
        (0.2, None, False, "better"),
        (0.2, None, True, "not told apart"),
    ],
)
def test_an_outcome_needs_both_intervals_apart_and_a_difference(value, interval, both, outcome) -> None:
    found = Difference(value, interval, both)
    assert found.outcome == outcome
    assert Difference.from_json(json.loads(json.dumps(asdict(found)))) == found


def test_less_is_better_in_perplexity_and_touching_intervals_overlap() -> None:
    table = metric("perplexity").table
    weights = np.full(50, 7)
    good, bad = (table(np.linspace(mean, mean + 1, 50), weights) for mean in (1.0, 2.0))
    low, high = differences({"perplexity": good}, {"perplexity": bad}, derive(0, "x"))["perplexity"]
    assert 0 < low <= high
    assert overlap((0.1, 0.3), (0.3, 0.5))
    assert overlap((0.3, 0.5), (0.1, 0.3))
    assert not overlap((0.1, 0.2), (0.3, 0.5))


@pytest.mark.parametrize("name", ["accuracy", "spearman"])
def test_ten_thousand_rows_take_less_than_a_second_of_one_processor(name: str) -> None:
    rng = np.random.default_rng(0)
    table = metric(name).table(*rng.normal(size=(2, 10_000)))
    began = time.process_time()
    intervals({name: table + (name == "accuracy") * 0.5}, derive(0))
    assert time.process_time() - began < 1.0
