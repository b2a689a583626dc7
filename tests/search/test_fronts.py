import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymoo.indicators.hv import HV
from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, Direction, History, Objective, Observation, Request, Trial
from formwright.search.fronts import best_first, best_of, crowding, front, hypervolume, non_dominated_rank, ranks
from formwright.search.scores import Scores
from formwright.testing.spaces import small

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
    assert (non_dominated_rank(points, least(points.shape[1])) == expected).all()


@given(ROWS)
def test_maximising_is_minimising_the_opposite(rows: list[list[int]]) -> None:
    points = np.array(rows, dtype=float)
    width = points.shape[1]
    opposite = non_dominated_rank(-points, ["max"] * width)
    assert (opposite == non_dominated_rank(points, least(width))).all()


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


def test_directions_must_fit_the_columns() -> None:
    with pytest.raises(IllegalInput, match=r"2 directions need rows of as many values, not shape \(1, 3\)"):
        non_dominated_rank([[1, 2, 3]], ["min", "max"])


def scores(values: list[list[float]], violations: list[float]) -> Scores:
    return Scores(np.array(values), np.array(violations))


def test_a_smaller_violation_is_better_than_any_value() -> None:
    given_scores = scores([[0.0], [9.0], [5.0], [5.0], [1.0]], [2.0, 0.0, 0.5, 0.0, 2.0])
    assert best_first(given_scores) == [3, 1, 2, 0, 4]
    assert ranks(given_scores).tolist() == [3, 1, 2, 0, 3]
    assert best_first(given_scores, 2) == [3, 1]


def test_the_less_crowded_of_a_front_comes_first() -> None:
    given_scores = scores([[5, 5], [1, 3.5], [0, 4], [4, 0], [2, 2.5]], [0.0] * 5)
    assert best_first(given_scores) == [2, 3, 4, 1, 0]


@given(ROWS, st.integers(0, 10))
def test_the_first_few_are_the_first_of_all(rows: list[list[int]], most: int) -> None:
    given_scores = scores([[float(value) for value in row] for row in rows], [float(row[0] // 4) for row in rows])
    assert best_first(given_scores, most) == best_first(given_scores)[:most]


def history(*points: tuple[int, float, float, int | None]) -> History:
    """Make a history of (design, accuracy, params, steps)."""
    space = small()
    designs = list(space.enumerate())
    return History(
        tuple(
            Trial(
                number,
                Request(space.card(designs[design]), Budget(steps), None, designs[design]),
                "finished",
                Observation({"accuracy": accuracy, "params": size}),
            )
            for number, (design, accuracy, size, steps) in enumerate(points)
        )
    )


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


def test_with_one_goal_the_best_are_all_trials_in_their_order() -> None:
    past = history((0, 0.1, 10, None), (1, 0.9, 90, None), (2, 0.5, 50, None), (3, 0.9, 10, None), (4, 1.0, 10, 5))
    assert [trial.number for trial in best_of(past, GOALS[:1])] == [1, 3, 2, 0]


def test_the_longest_evaluations_alone_count() -> None:
    past = history((0, 0.9, 10, 3), (1, 0.5, 10, 3), (0, 0.4, 10, 9))
    assert [trial.number for trial in front(past, GOALS)] == [2]
    past = history((0, 0.2, 10, None), (0, 0.9, 10, 100))
    assert [trial.number for trial in front(past, GOALS)] == [0]
