from collections import Counter

import pytest
from tests.search.contract import Contract

from formwright.core.records import Budget, History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.halving import Halving, rungs_of
from formwright.search.proposals import anything
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Toy, large, run, small


class TestHalving(Contract):
    kind, options = Halving, {"min_steps": 3, "max_steps": 27}


def rung(points: list[tuple[float, float]], steps: int) -> History:
    """Make a history of one rung: an accuracy and a size for each of so many designs."""
    space = small()
    trials = []
    for number, (design, (accuracy, size)) in enumerate(zip(space.enumerate(), points, strict=False)):
        request = Request(space.card(design), Budget(steps), None, design)
        observation = Observation({"accuracy": accuracy, "params": size})
        trials.append(Trial(number, request, "finished", observation))
    return History(tuple(trials))


def halving(*objectives: Objective) -> Halving:
    return Halving(small(), objectives or (ACCURACY,), anything, min_steps=3, max_steps=27)


def test_rungs_end_with_the_full_length() -> None:
    assert Halving(small(), (ACCURACY,), anything, 1, 16, 4).rungs == (1, 4, 16)
    assert Halving.for_budget(None, 270) == {"min_steps": 10, "max_steps": 270}
    assert Halving.for_budget(None, 5) == {"min_steps": 1, "max_steps": 5}
    assert Halving.for_budget(10, None) == {}


def test_the_best_third_is_promoted_once_and_at_once() -> None:
    history = rung([(0.1, 1), (0.5, 1), (0.3, 1)], 3)
    assert halving().ask(History(history.trials[:2]), derive(0)).budget == Budget(3)
    promotion = halving().ask(history, derive(0))
    best = history.trials[1].request
    assert promotion == Request(best.card, Budget(9), 1, best.design)
    for pending in (Trial(3, promotion), Trial(3, promotion, "failed", reason="no memory")):
        following = halving().ask(History((*history.trials, pending)), derive(0))
        assert (following.budget, following.parent) == (Budget(3), None)


def test_the_highest_rung_goes_first() -> None:
    low = rung([(0.1, 1), (0.5, 1), (0.3, 1), (0.2, 1)] * 3, 3).trials
    high = tuple(
        Trial(12 + number, Request(low[number].request.card, Budget(9), number, low[number].request.design), "finished",
              Observation({"accuracy": number / 10}))
        for number in range(3)
    )  # fmt: skip
    assert halving().ask(History((*low, *high)), derive(0)).budget == Budget(27)
    assert halving().ask(History((*low, *high)), derive(0)).parent == 14


def test_with_several_goals_the_first_front_is_promoted() -> None:
    # the second and the last are best in one goal each; the first is beaten by the second in both
    points = [(0.4, 6.0), (0.5, 5.0), (0.3, 9.0), (0.2, 8.0), (0.1, 7.0), (0.05, 1.0)]
    history = rung(points, 3)
    parents = set()
    for _ in range(2):
        promotion = halving(ACCURACY, PARAMS).ask(history, derive(0))
        assert promotion.budget == Budget(9)
        parents.add(promotion.parent)
        history = History((*history.trials, Trial(len(history.trials), promotion)))
    assert parents == {1, 5}


def test_a_limit_that_was_broken_stops_a_promotion() -> None:
    history = rung([(0.9, 8.0), (0.5, 2.0), (0.3, 1.0)], 3)
    assert halving(ACCURACY, Objective.parse("params<=4")).ask(history, derive(0)).parent == 1


def test_a_run_spends_most_trials_on_short_evaluations() -> None:
    history = run(Halving(large(), (ACCURACY, PARAMS), anything, 3, 27), Toy(), 130)
    number = Counter(trial.request.budget.steps for trial in history.trials)
    assert number[3] > 70
    assert number[3] // 3 <= number[9] < 45
    assert number[9] // 3 <= number[27] < 25


@pytest.mark.parametrize(
    ("steps", "rungs"),
    [(300, (12, 36, 108, 300)), (1000, (38, 114, 342, 1000)), (100, (4, 12, 36, 100)), (27, (1, 3, 9, 27))],
)
def test_no_rung_is_nearly_as_long_as_the_last(steps: int, rungs: tuple[int, ...]) -> None:
    assert Halving(small(), (ACCURACY,), anything, **Halving.for_budget(None, steps)).rungs == rungs


@pytest.mark.parametrize(
    ("options", "rungs"),
    [((3, 27, 3), (3, 9, 27)), ((3, 30, 3), (3, 9, 27, 30)), ((5, 5, 3), (5,)), ((1, 100, 100), (1, 100))],
)
def test_rungs_grow_by_a_factor_and_end_with_the_full_length(
    options: tuple[int, int, int], rungs: tuple[int, ...]
) -> None:
    assert rungs_of(*options) == rungs
