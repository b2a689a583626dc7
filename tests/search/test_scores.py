import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymoo.indicators.hv import HV
from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, Direction, History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.scores import (
    Scores,
    best_first,
    best_of,
    crowding,
    front,
    goals_of,
    hypervolume,
    ranks,
    score,
    targets,
    violation,
)
from formwright.testing.toy_problem import small, tiny


def trial(**metrics: float) -> Trial:
    space = tiny()
    return Trial(7, Request(space.card(space.sample(derive(0)))), "finished", Observation(metrics))


def objectives(*texts: str) -> tuple[Objective, ...]:
    return tuple(map(Objective.parse, texts))


def test_scores_of_trials() -> None:
    scores = score(
        [trial(accuracy=0.5, params=3), trial(accuracy=0.7, params=4)], objectives("accuracy:max", "params:min")
    )
    assert scores.values.tolist() == [[-0.5, 3.0], [-0.7, 4.0]]
    assert scores.violations.tolist() == [0.0, 0.0]
    given = objectives("accuracy:max", "params<=10", "accuracy>=0.8", "bias<=0")
    scores = score([trial(accuracy=0.4, params=15, bias=0.25), trial(accuracy=0.9, params=10, bias=-1)], given)
    assert scores.violations.tolist() == pytest.approx([0.5 + 0.5 + 0.25, 0.0])
    assert score([trial(accuracy=0.4)], objectives("accuracy:max", "params<=10")).violations.tolist() == [0.0]
    scores = score([], objectives("accuracy:max", "params:min"))
    assert scores.values.shape == (0, 2)
    assert scores.violations.shape == (0,)
    assert violation(Objective.parse("accuracy:max"), -5.0) == 0.0
    assert violation(Objective.parse("error<=-2"), 1.0) == 1.5


def test_a_missing_goal_is_told() -> None:
    with pytest.raises(IllegalInput, match="trial 7 has no metric 'f1'; it has: accuracy, loss"):
        score([trial(loss=1.0, accuracy=0.4)], objectives("f1:max"))
    given = objectives("accuracy:max", "params<=10")
    assert goals_of(given) == given[:1]
    with pytest.raises(IllegalInput, match="nothing to improve; add an objective"):
        goals_of(())
    with pytest.raises(IllegalInput, match="trial 0 has no metric 'accuracy'"):
        targets(trials(loss=[1.0, 2.0]), ACCURACY)


GOALS = (Objective.parse("accuracy:max"), Objective.parse("params:min"))
# few different numbers, so that equal values and equal rows are common
ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 6), min_size=width, max_size=width), min_size=1, max_size=30)
)


def least(width: int) -> list[Direction]:
    return ["min"] * width


@given(ROWS)
def test_ranks_are_pymoos(rows: list[list[int]]) -> None:
    points = np.array(rows, dtype=float)
    expected = NonDominatedSorting().do(points, return_rank=True)[1]
    assert (ranks(Scores(points, np.zeros(len(points)))) == expected).all()


@given(ROWS)
def test_maximising_is_minimising_the_opposite(rows: list[list[int]]) -> None:
    points = np.array(rows, dtype=float)
    width = points.shape[1]
    reference = points.max(axis=0) + 1
    opposite = hypervolume(-points, -reference, ["max"] * width)
    assert opposite == hypervolume(points, reference, least(width))


@given(st.integers(2, 40), st.integers(2, 4), st.integers(0, 1000))
def test_crowding_is_pymoos(number: int, width: int, seed: int) -> None:
    points = np.random.default_rng(seed).random((number, width))
    assert crowding(points) == pytest.approx(np.asarray(calc_crowding_distance(points)))


def test_crowding_counts_equal_rows_once() -> None:
    assert crowding([[0, 4], [1, 1], [1, 1], [4, 0]]).tolist() == [np.inf, 1.0, 0.0, np.inf]
    assert crowding([[2, 2], [2, 2]]).tolist() == [np.inf, 0.0]


@given(ROWS)
def test_hypervolume_is_pymoos(rows: list[list[int]]) -> None:
    points = np.array(rows, dtype=float)
    reference = np.full(points.shape[1], 5.0)
    expected = HV(ref_point=reference)(points)
    assert hypervolume(points, reference, least(points.shape[1])) == pytest.approx(expected)


def test_hypervolume_of_a_few_points_by_hand() -> None:
    assert hypervolume([[0.5, 10.0], [0.75, 20.0]], [0.0, 40.0], ["max", "min"]) == 0.5 * 30 + 0.25 * 20
    assert hypervolume([[0.5, 50.0]], [0.0, 40.0], ["max", "min"]) == 0.0
    with pytest.raises(IllegalInput, match=r"2 directions need rows of as many values, not shape \(1, 3\)"):
        hypervolume([[1, 2, 3]], [4, 4], ["min", "max"])


def scores(values: list[list[float]], violations: list[float]) -> Scores:
    return Scores(np.array(values), np.array(violations))


def test_the_order_is_by_violation_front_and_crowding() -> None:
    given_scores = scores([[0.0], [9.0], [5.0], [5.0], [1.0]], [2.0, 0.0, 0.5, 0.0, 2.0])
    assert best_first(given_scores) == [3, 1, 2, 0, 4]
    assert ranks(given_scores).tolist() == [3, 1, 2, 0, 3]
    assert best_first(given_scores, 2) == [3, 1]
    given_scores = scores([[5, 5], [1, 3.5], [0, 4], [4, 0], [2, 2.5]], [0.0] * 5)
    assert best_first(given_scores) == [2, 3, 4, 1, 0]


@given(ROWS, st.integers(0, 10))
def test_the_first_few_are_the_first_of_all(rows: list[list[int]], most: int) -> None:
    given_scores = scores([[float(value) for value in row] for row in rows], [float(row[0] // 4) for row in rows])
    assert best_first(given_scores, most) == best_first(given_scores)[:most]


def history(*points: tuple[int, float, float, int | None]) -> History:
    """Make a history of (design, accuracy, params, steps)."""
    space = small()
    designs, found = list(space.enumerate()), []
    for number, (design, accuracy, size, steps) in enumerate(points):
        request = Request(space.card(designs[design]), Budget(steps), None, designs[design])
        found.append(Trial(number, request, "finished", Observation({"accuracy": accuracy, "params": size})))
    return History(tuple(found))


def test_the_front_of_a_history() -> None:
    past = history((0, 0.5, 10, None), (1, 0.4, 12, None), (2, 0.9, 30, None), (3, 0.2, 5, None))
    pending = Trial(4, past.trials[0].request)
    everything = History((*past.trials, pending))
    assert [trial.number for trial in front(everything, GOALS)] == [0, 2, 3]
    limited = (*GOALS, Objective.parse("params<=20"))
    assert [trial.number for trial in front(everything, limited)] == [0, 3]
    assert front(past, (*GOALS, Objective.parse("params<=1"))) == ()
    assert front(History(), GOALS) == ()


def test_the_best_of_a_front_is_best_in_the_first_goal() -> None:
    past = history((0, 0.1, 10, None), (1, 0.9, 90, None), (2, 0.5, 50, None), (3, 0.48, 49, None), (4, 0.4, 60, None))
    assert [trial.number for trial in best_of(past, GOALS)] == [1, 0, 2, 3]
    assert [trial.number for trial in best_of(past, GOALS[::-1])] == [0, 1, 2, 3]
    limited = (*GOALS, Objective.parse("params<=60"))
    assert [trial.number for trial in best_of(past, limited)] == [2, 0, 3]
    assert best_of(past, (*GOALS, Objective.parse("params<=1"))) == ()
    assert best_of(History(), GOALS) == ()
    past = history((0, 0.1, 10, None), (1, 0.9, 90, None), (2, 0.5, 50, None), (3, 0.9, 10, None), (4, 1.0, 10, 5))
    assert [trial.number for trial in best_of(past, GOALS[:1])] == [1, 3, 2, 0]


def test_the_longest_evaluations_alone_count() -> None:
    past = history((0, 0.9, 10, 3), (1, 0.5, 10, 3), (0, 0.4, 10, 9))
    assert [trial.number for trial in front(past, GOALS)] == [2]
    past = history((0, 0.2, 10, None), (0, 0.9, 10, 100))
    assert [trial.number for trial in front(past, GOALS)] == [0]


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


def test_limits_order_trials_only_where_they_are_broken() -> None:
    limited = (*ACCURACY, Objective.parse("params<=10"))
    found = targets(trials(accuracy=[0.5, 0.99, 0.6, 0.98], params=[10, 30, 9, 11]), limited)
    assert np.argsort(found).tolist() == [1, 3, 0, 2]
    kept = trials(accuracy=[0.5, 0.9, 0.6], params=[1, 2, 10])
    assert np.array_equal(targets(kept, limited), targets(kept, ACCURACY))


@pytest.mark.parametrize("values", [[], [0.3], [0.3, 0.3, 0.3]])
def test_where_nothing_differs_all_is_zero(values: list[float]) -> None:
    assert targets(trials(accuracy=values), ACCURACY).tolist() == [0.0] * len(values)
