import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.targets import targets
from formwright.testing.spaces import tiny

CARD = tiny().card(tiny().sample(derive(0)))
ACCURACY = (Objective.parse("accuracy:max"),)
NUMBERS = st.lists(st.integers(-50, 50), min_size=2, max_size=20).filter(lambda values: len(set(values)) > 1)


def trials(**columns: list[float]) -> list[Trial]:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [Trial(number, Request(CARD), "finished", Observation(row)) for number, row in enumerate(rows)]


@given(NUMBERS)
def test_one_goal_is_standardised_and_larger_is_better(values: list[float]) -> None:
    raised = targets(trials(accuracy=values), ACCURACY)
    assert raised == pytest.approx((np.array(values) - np.mean(values)) / np.std(values))
    assert targets(trials(loss=values), (Objective.parse("loss:min"),)) == pytest.approx(-raised)


@given(NUMBERS, st.floats(0.01, 100), st.integers(-9, 9))
def test_the_unit_of_a_goal_makes_no_difference(values: list[float], unit: float, shift: int) -> None:
    scaled = [unit * value + shift for value in values]
    assert targets(trials(accuracy=scaled), ACCURACY) == pytest.approx(targets(trials(accuracy=values), ACCURACY))


def test_of_several_goals_the_order_counts() -> None:
    goals = (*ACCURACY, Objective.parse("params:min"))
    found = targets(trials(accuracy=[0.9, 0.2, 0.8, 0.1], params=[5, 900, 4, 1e9]), goals)
    assert found.mean() == pytest.approx(0)
    assert found.std() == pytest.approx(1)
    # both of the first front before the two that they dominate, and these in turn, at equal steps
    assert np.argsort(found)[::-1].tolist()[2:] == [1, 3]
    assert np.diff(np.sort(found)) == pytest.approx(np.full(3, 2 / np.sqrt(5)))


def test_a_trial_beyond_a_limit_is_worse_than_all_within() -> None:
    limited = (*ACCURACY, Objective.parse("params<=10"))
    found = targets(trials(accuracy=[0.5, 0.99, 0.6, 0.98], params=[10, 30, 9, 11]), limited)
    assert np.argsort(found).tolist() == [1, 3, 0, 2]


def test_a_limit_that_all_keep_makes_no_difference() -> None:
    limited = (*ACCURACY, Objective.parse("params<=10"))
    kept = trials(accuracy=[0.5, 0.9, 0.6], params=[1, 2, 10])
    assert np.array_equal(targets(kept, limited), targets(kept, ACCURACY))


@pytest.mark.parametrize("values", [[], [0.3], [0.3, 0.3, 0.3]])
def test_where_nothing_differs_all_is_zero(values: list[float]) -> None:
    assert targets(trials(accuracy=values), ACCURACY).tolist() == [0.0] * len(values)


def test_a_metric_that_is_missing_is_told() -> None:
    with pytest.raises(IllegalInput, match="trial 0 has no metric 'accuracy'"):
        targets(trials(loss=[1.0, 2.0]), ACCURACY)
