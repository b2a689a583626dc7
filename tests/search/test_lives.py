from collections.abc import Sequence

import numpy as np
import pytest

from formwright.core.records import Budget, History, Observation, Request, State, Trial
from formwright.search.lives import Hurdle, Rules, Standing, fitness, lives_of, standing
from formwright.search.scores import Scores
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.spaces import small

RUNGS = (1, 3, 9)
SPACE = small()
DESIGNS = [design for design, _ in zip(SPACE.enumerate(), range(40), strict=False)]


def trial(number: int, design: int, steps: int | None, accuracy: float | None, state: State = "finished") -> Trial:
    """Make a trial of one of `DESIGNS`; an accuracy of None is for one that has not finished."""
    request = Request(SPACE.card(DESIGNS[design]), Budget(steps), None, DESIGNS[design])
    if accuracy is not None:
        return Trial(number, request, state, Observation({"accuracy": accuracy}))
    return Trial(number, request, state, None, "no memory" if state == "failed" else "")


def history(*rows: tuple[int, int | None, float | None] | tuple[int, int | None, float | None, State]) -> History:
    """Make a history of (design, steps, accuracy), or with a state."""
    return History(tuple(trial(number, *row) for number, row in enumerate(rows)))


def stand(past: History, population: int = 10, tournament: int = 2, batch: int = 3) -> Standing:
    return standing(lives_of(past, RUNGS), (ACCURACY,), len(RUNGS) - 1, Rules(population, tournament, batch))


def heights(found: Standing) -> list[float]:
    return [hurdle.height for hurdle in found.hurdles]


def test_a_life_is_all_trials_of_one_design() -> None:
    past = history((0, 1, 0.1), (1, 1, 0.2), (0, 3, 0.4), (2, 1, None, "pending"), (1, 3, None, "failed"))
    first, second, third = lives_of(past, RUNGS)
    assert (first.latest, first.rung, first.under_way, first.failed) == (past.trials[2], 1, False, False)
    assert (second.latest, second.rung, second.fertile) == (past.trials[1], 0, False)
    assert (third.latest, third.rung, third.under_way, third.fertile) == (None, -1, True, False)


def test_no_budget_is_the_last_rung_and_other_budgets_are_left_out() -> None:
    past = history((0, None, 0.1), (1, 2, 0.2))
    assert [life.rung for life in lives_of(past, RUNGS)] == [2]


def test_the_first_hurdle_is_the_mean_of_the_first_batch() -> None:
    past = history((0, 1, 0.1), (1, 1, 0.2), (2, 1, 0.6))
    assert heights(stand(History(past.trials[:2]))) == []
    found = stand(past)
    assert heights(found) == [pytest.approx(0.3)]
    assert found.due == ()  # it is for those born later: the third one is above it, but was there before
    assert found.alive == (0, 1, 2)


FIRST = ((0, 1, 0.25), (1, 1, 0.5), (2, 1, 0.75))  # their mean, 0.5, is exact


@pytest.mark.parametrize(("accuracy", "due"), [(0.5, ()), (0.5000001, (3,)), (0.4999999, ())])
def test_only_those_strictly_above_earn_the_next_slice(accuracy: float, due: tuple[int, ...]) -> None:
    assert stand(history(*FIRST, (3, 1, accuracy))).due == due


def test_further_hurdles_come_from_those_that_reached_them() -> None:
    # designs 3 and 5 cleared the first hurdle of 0.5, design 4 did not
    second = ((3, 1, 0.6), (3, 3, 0.7), (4, 1, 0.4), (5, 1, 0.9), (5, 3, 0.8))
    found = stand(history(*FIRST, *second))
    assert heights(found) == [0.5, 0.75]
    third = ((6, 1, 0.55), (6, 3, 0.75), (7, 1, 0.55), (7, 3, 0.76))
    assert stand(history(*FIRST, *second, *third)).due == (7,)
    # the last rung has no hurdle
    last = ((7, 9, 0.9), (8, 1, 0.3), (9, 1, 0.3), (10, 1, 0.3), (11, 1, 0.3))
    assert heights(stand(history(*FIRST, *second, *third, *last))) == [0.5, 0.75]


def test_a_batch_in_which_nobody_came_so_far_sets_no_hurdle() -> None:
    second = ((3, 1, 0.1), (4, 1, 0.2), (5, 1, 0.3))
    assert heights(stand(history(*FIRST, *second))) == [0.5]
    third = ((6, 1, 0.6), (6, 3, 0.65), (7, 1, 0.1), (8, 1, 0.1))
    assert heights(stand(history(*FIRST, *second, *third))) == [0.5, 0.65]


def test_a_hurdle_waits_for_the_slowest_and_is_then_for_all_born_later() -> None:
    early = ((0, 1, 0.25), (1, 1, None, "pending"), (2, 1, 0.75), (3, 1, 0.6), (4, 1, 0.4))
    waiting = stand(history(*early))
    assert (heights(waiting), waiting.due, waiting.alive) == ([], (), (0, 2, 3, 4))
    late = history(early[0], (1, 1, 0.5), *early[2:])
    assert (heights(stand(late)), stand(late).due) == ([0.5], (3,))


def test_a_hurdle_waits_for_those_who_earned_a_further_slice_and_have_not_begun_it() -> None:
    # designs 3 and 5 cleared the first hurdle of 0.5; only 5 was trained on so far
    second = ((3, 1, 0.6), (4, 1, 0.4), (5, 1, 0.9), (5, 3, 0.8))
    waiting = stand(history(*FIRST, *second))
    assert (heights(waiting), waiting.due) == ([0.5], (3,))
    assert heights(stand(history(*FIRST, *second, (3, 3, 0.7)))) == [0.5, 0.75]


def test_a_hurdle_never_changes_whatever_comes_later() -> None:
    rows: list[tuple[int, int, float]] = [*FIRST]
    for design in range(3, 30):
        rows.append((design, 1, 0.3 + 0.02 * design))
        for steps in RUNGS[1:]:
            found = stand(history(*rows), population=5)
            if found.due:
                rows.append((design, steps, rows[-1][2] + 0.1))
    found = heights(stand(history(*rows), population=5))
    assert len(found) == 2
    for length in range(1, len(rows)):
        past = heights(stand(history(*rows[:length]), population=5))
        assert past == found[: len(past)]


def test_a_slice_that_is_under_way_or_failed_is_not_earned_again() -> None:
    for state in ("pending", "failed"):
        assert stand(history(*FIRST, (3, 1, 0.9), (3, 3, None, state))).due == ()
    # who failed leaves the population
    assert stand(history(*FIRST, (3, 1, 0.9), (3, 3, None, "failed"))).alive == (0, 1, 2)


def test_failed_designs_set_no_hurdle() -> None:
    past = history((0, 1, 0.2), (1, 1, None, "failed"), (2, 1, 0.4))
    assert heights(stand(past)) == [pytest.approx(0.3)]
    nobody = history(*[(design, 1, None, "failed") for design in range(3)])
    assert (heights(stand(nobody)), stand(nobody).alive) == ([], ())


def test_a_child_takes_the_place_of_the_least_fit_of_those_drawn() -> None:
    # everybody is drawn, so that the worst of the population goes: 0.1, then 0.2, then the child that came with 0.15
    past = history((0, 1, 0.3), (1, 1, 0.1), (2, 1, 0.2), (3, 1, 0.4), (4, 1, 0.15), (5, 1, 0.5))
    assert stand(past, population=3, tournament=3, batch=50).alive == (0, 3, 5)
    for length, alive in [(4, (0, 3, 2)), (5, (0, 3, 4))]:
        assert stand(History(past.trials[:length]), population=3, tournament=3, batch=50).alive == alive


def test_a_hurdle_is_of_the_present_population_alone() -> None:
    past = history((0, 1, 0.25), (1, 1, 0.125), (2, 1, 0.5), (3, 1, 0.75))
    assert heights(stand(past, population=2, tournament=2, batch=4)) == [0.625]


def scores(*rows: Sequence[float], violations: Sequence[float] | None = None) -> Scores:
    return Scores(np.array(rows), np.zeros(len(rows)) if violations is None else np.array(violations))


def test_with_one_goal_fitness_is_its_value() -> None:
    assert fitness(scores([-0.5], [-0.25]), scores([0.0])).tolist() == [0.5, 0.25]


def test_with_several_goals_fitness_counts_who_is_better() -> None:
    group = scores([1, 4], [2, 2], [4, 1], [3, 3], [4, 4])
    assert fitness(group, group).tolist() == [0, 0, 0, -1, -4]
    hurdle = Hurdle.of(group)
    assert hurdle.height == -1.0
    assert not hurdle.cleared_by(scores([3, 3]))  # exactly as good as the mean
    assert hurdle.cleared_by(scores([5, 0]))


def test_who_breaks_a_limit_is_behind_who_keeps_it_and_behind_who_breaks_it_less() -> None:
    group = scores([-0.9], [-0.1], [-0.5], violations=[2.0, 0.0, 1.0])
    assert fitness(group, group).tolist() == [-2, 0, -1]
    # a limit that nobody broke before is not cleared by breaking it
    assert not Hurdle.of(scores([-0.1], [-0.2])).cleared_by(scores([-0.9], violations=[0.5]))
    # where all break a limit, who breaks it less than most goes on
    assert Hurdle.of(scores([-0.1], [-0.2], violations=[1.0, 2.0])).cleared_by(scores([-0.1], violations=[0.5]))
