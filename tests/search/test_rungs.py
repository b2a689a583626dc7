from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.fake_table import fake_benchmark
from tests.search.contract import Contract

from formwright.core.records import Budget, History, Objective, Observation, Request, State, Trial
from formwright.core.rng import derive
from formwright.search.proposals import anything
from formwright.search.rungs import (
    EvolutionState,
    Halving,
    Hurdle,
    Hurdles,
    draw,
    evolution_state,
    fitness,
    height,
    progress_of,
    rungs_of,
)
from formwright.search.scores import Scores
from formwright.space import Space
from formwright.study.contest import find_methods, replay
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Toy, ask, large, run, small, tell


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


class TestHurdles(Contract):
    kind, options = Hurdles, {"population": 5, "tournament": 2, "batch": 5, "min_steps": 3, "max_steps": 27}


@pytest.mark.long
class TestHurdlesWithOneGoal(Contract):
    kind, objectives = Hurdles, (ACCURACY,)
    options: ClassVar = {"population": 6, "tournament": 3, "batch": 4, "min_steps": 3, "max_steps": 9}


def hurdles(space: Space | None = None, population: int = 4, batch: int = 4) -> Hurdles:
    sizes = {"population": population, "tournament": 2, "batch": batch}
    return Hurdles(space or small(), (ACCURACY,), anything, 3, 27, **sizes)


def told(accuracies: list[float], steps: int = 3) -> History:
    return rung([(accuracy, 1) for accuracy in accuracies], steps)


FIRST = [0.125, 0.25, 0.375, 0.25]  # their mean is 0.25


def test_the_first_designs_are_random_and_the_next_are_mutants_of_winners() -> None:
    for length in range(4):
        request = hurdles().ask(told(FIRST[:length]), derive(0))
        assert (request.parent, request.budget) == (None, Budget(3))
    past = told(FIRST)
    parents: Counter[int] = Counter()
    for seed in range(60):
        request = hurdles().ask(past, derive(seed))
        assert request.budget == Budget(3)
        parents[request.parent] += 1
        assert request.parent is not None
        design: Any = past.trials[request.parent].request.design
        child: Any = request.design
        changed = sum(mine != theirs for mine, theirs in zip(child.layers, design.layers, strict=False))
        assert changed + abs(len(child.layers) - len(design.layers)) == 1
    # two of four enter: the best one wins half of the tournaments, and the worst one none
    assert 15 < parents[2] < 45
    assert parents[0] == 0
    assert set(parents) == {1, 2, 3}


@pytest.mark.parametrize(("accuracy", "earned"), [(0.25, False), (0.2500001, True), (0.2, False)])
def test_only_a_design_strictly_above_the_hurdle_goes_on(accuracy: float, earned: bool) -> None:
    past = told([*FIRST, accuracy])
    assert hurdles().hurdles(past) == (0.25,)
    request = hurdles().ask(past, derive(0))
    if earned:
        child = past.trials[4].request
        assert request == Request(child.card, Budget(9), 4, child.design)
    else:
        assert request.budget == Budget(3)
        assert request.card.digest not in past.digests


def test_a_slice_under_way_or_failed_is_not_asked_for_again() -> None:
    past = told([*FIRST, 0.5])
    slice_ = hurdles().ask(past, derive(0))
    for trial in (Trial(5, slice_), Trial(5, slice_, "failed", reason="no memory")):
        following = hurdles().ask(History((*past.trials, trial)), derive(0))
        assert following.budget == Budget(3)
        assert following.card.digest not in past.digests


def test_a_goal_to_minimise_has_hurdles_too() -> None:
    space, loss = small(), (Objective.parse("accuracy:min"),)
    searcher = Hurdles(space, loss, anything, 3, 27, population=4, tournament=2, batch=4)
    assert searcher.hurdles(told(FIRST)) == (-0.25,)
    assert searcher.ask(told([*FIRST, 0.2]), derive(0)).budget == Budget(9)
    assert searcher.ask(told([*FIRST, 0.3]), derive(0)).budget == Budget(3)


def test_nobody_is_trained_from_scratch_twice_and_no_slice_is_left_out() -> None:
    history = run(hurdles(large(), population=10, batch=10), Toy(), 120)
    slices: dict[str, list[Trial]] = {}
    for trial in history.trials:
        slices.setdefault(trial.request.card.digest, []).append(trial)
    for trials in slices.values():
        steps = [trial.request.budget.steps for trial in trials]
        assert steps == [3, 9, 27][: len(steps)]
        assert all(above.request.parent == below.number for below, above in pairwise(trials))
    assert {len(trials) for trials in slices.values()} == {1, 2, 3}


def test_the_same_as_a_search_that_remembers_hurdles_instead_of_reading_them_off_the_trials() -> None:
    """Follow a serial search by hand: nobody is promoted before a hurdle stands, and everybody above it is."""
    searcher = hurdles(large(), population=8, batch=8)
    history = run(searcher, Toy(), 90)
    born, evolution_state, expected = 0, (), None
    for number, trial in enumerate(history.trials):
        if expected is not None:
            assert (trial.request.card.digest, trial.request.budget.steps) == expected
        else:
            assert trial.request.budget.steps == 3
            evolution_state = searcher.hurdles(History(history.trials[:number]))
            assert len(evolution_state) <= born // 8
            born += 1
        assert trial.observation is not None
        rung = (3, 9, 27).index(trial.request.budget.steps or 0)
        above = rung < len(evolution_state) and trial.observation.metrics["accuracy"] > evolution_state[rung]
        expected = (trial.request.card.digest, (9, 27)[rung]) if above else None
    assert len(evolution_state) == 2


def test_several_workers_earn_the_same_slices() -> None:
    searcher, history, rng = hurdles(large(), population=8, batch=8), History(), derive(5)
    pending: list[int] = []
    for number in range(100):
        history = ask(searcher, history, seed=0)
        pending.append(number)
        if len(pending) > 3:
            done = pending.pop(int(rng.integers(len(pending))))
            history = tell(history, done, Toy().evaluate(history.trials[done].request))
    steps = Counter(trial.request.budget.steps for trial in history.trials)
    assert steps[3] > steps[9] > steps[27] > 0
    asked = [(trial.request.card.digest, trial.request.budget) for trial in history.trials]
    assert len(set(asked)) == len(asked)
    evolution_state = searcher.hurdles(history)
    for trial in history.trials:
        if trial.request.budget.steps in (9, 27):
            below = history.trials[trial.request.parent or 0]
            assert below.observation.metrics["accuracy"] > evolution_state[0 if trial.request.budget.steps == 9 else 1]


def test_limits_are_kept_by_children_and_later_slices() -> None:
    def legal(card: Any) -> bool:
        return len(card.encoder.layers) <= 6

    searcher = Hurdles(large(), (ACCURACY,), legal, 3, 27, population=8, tournament=3, batch=8)
    history = run(searcher, Toy(), 80)
    assert all(legal(trial.request.card) for trial in history.trials)
    assert {trial.request.budget.steps for trial in history.trials} == {3, 9, 27}


def test_a_design_given_first_in_full_is_a_parent_but_sets_no_early_hurdle() -> None:
    past = told(FIRST)
    space = small()
    seed = list(space.enumerate())[50]
    full = Trial(4, Request(space.card(seed), Budget.full(), None, seed), "finished", Observation({"accuracy": 0.9}))
    searcher = hurdles(population=5, batch=5)
    history = History((*past.trials, full))
    assert searcher.hurdles(history) == (0.25,)
    assert 4 in {searcher.ask(history, derive(number)).parent for number in range(20)}


@pytest.mark.slow
@pytest.mark.long
def test_it_finds_better_designs_than_evolution_of_short_trainings_with_the_same_steps() -> None:
    def best(most: int, seed: int) -> float:
        """Return the full accuracy of the best of what 400 steps of training pay for."""
        searcher = Hurdles(large(), (ACCURACY,), anything, 3, most, population=12, tournament=4, batch=12)
        history, trained = History(), Counter[str]()
        while trained.total() < 400:
            history = ask(searcher, history, seed)
            request = history.trials[-1].request
            trained[request.card.digest] = request.budget.steps or 0  # a slice adds to the one before
            history = tell(history, len(history.trials) - 1, Toy().evaluate(request))
        top = max(history.finished, key=lambda trial: trial.observation.metrics["accuracy"] if trial.observation else 0)
        return Toy().evaluate(Request(top.request.card)).metrics["accuracy"]

    staged, short = ([best(most, seed) for seed in range(5)] for most in (27, 3))
    assert np.mean(staged) > np.mean(short)


def test_sizes_follow_the_budget() -> None:
    assert Hurdles.for_budget(None, None) == {"population": 100, "tournament": 10, "batch": 100}
    assert Hurdles.for_budget(1000, 90) == {
        "population": 100, "tournament": 10, "batch": 100, "min_steps": 10, "max_steps": 90
    }  # fmt: skip
    assert Hurdles.for_budget(30, None) == {"population": 6, "tournament": 2, "batch": 6}
    assert Hurdles.for_budget(1, 1) == {"population": 4, "tournament": 2, "batch": 4, "min_steps": 1, "max_steps": 1}


@pytest.mark.parametrize("trials", [24, 60, 120])
def test_a_small_budget_reaches_the_last_rung(trials: int) -> None:
    searcher = Hurdles(large(), (ACCURACY,), anything, **Hurdles.for_budget(trials, 27))
    assert searcher.rungs == (3, 9, 27)
    steps = Counter(trial.request.budget.steps for trial in run(searcher, Toy(), trials).trials)
    assert steps[27] >= trials // 12


def test_a_benchmark_gives_it_the_steps_of_its_table() -> None:
    benchmark, (method,) = fake_benchmark(), find_methods(["hurdles"])
    searcher = method.make(benchmark, 20)
    assert isinstance(searcher, Hurdles)
    assert (searcher.rungs, searcher.population, searcher.batch) == ((5, 10, 20), 4, 4)
    best = replay(benchmark, method, seed=0, evaluations=20).best
    assert len(best) == 20
    assert benchmark.ranks[best[-1]] <= 20  # of 200 designs


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 20))
def test_members_are_drawn_without_repeats(population: int, size: int, rows: int) -> None:
    drawn = draw(derive(0, population, size), rows, population, size)
    assert drawn.shape == (rows, min(size, population))
    for row in drawn.tolist():
        assert len(set(row)) == len(row)
        assert set(row) <= set(range(population))


@pytest.mark.parametrize("size", [3, 5])
def test_everybody_is_drawn_equally_often_at_every_place(size: int) -> None:
    drawn = draw(derive(1), 40_000, 5, size)
    for place in range(size):
        shares = np.bincount(drawn[:, place], minlength=5) / len(drawn)
        np.testing.assert_allclose(shares, 0.2, atol=0.01)


def test_tournaments_and_hurdles() -> None:
    np.testing.assert_array_equal(draw(derive(2), 3, 9, 4), draw(derive(2), 50, 9, 4)[:3])
    fitness = np.array([[0.25, 0.5, 0.75], [0.0, 0.0, 0.0]])
    assert height(fitness).tolist() == [0.5, 0.0]


@given(st.floats(-1e6, 1e6), st.integers(1, 200))
def test_nobody_is_above_the_mean_of_equals(value: float, number: int) -> None:
    equal = np.full(number, value)
    assert not (equal > height(equal)).any()


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


def stand(past: History, population: int = 10, tournament: int = 2, batch: int = 3) -> EvolutionState:
    sizes = {"population": population, "tournament": tournament, "batch": batch}
    return evolution_state(progress_of(past, RUNGS), Hurdles(SPACE, (ACCURACY,), anything, 1, 9, **sizes))


def heights(found: EvolutionState) -> list[float]:
    return [hurdle.height for hurdle in found.hurdles]


def test_progress_is_that_of_all_trials_of_a_design() -> None:
    past = history((0, 1, 0.1), (1, 1, 0.2), (0, 3, 0.4), (2, 1, None, "pending"), (1, 3, None, "failed"))
    first, second, third = progress_of(past, RUNGS)
    assert (first.latest, first.rung, first.under_way, first.failed) == (past.trials[2], 1, False, False)
    assert (second.latest, second.rung, second.fertile) == (past.trials[1], 0, False)
    assert (third.latest, third.rung, third.under_way, third.fertile) == (None, -1, True, False)
    past = history((0, None, 0.1), (1, 2, 0.2))
    assert [life.rung for life in progress_of(past, RUNGS)] == [2]


def test_the_first_hurdle_is_the_mean_of_the_first_batch() -> None:
    past = history((0, 1, 0.1), (1, 1, 0.2), (2, 1, 0.6))
    assert heights(stand(History(past.trials[:2]))) == []
    found = stand(past)
    assert heights(found) == [pytest.approx(0.3)]
    assert found.due == ()  # it is for those born later: the third one is above it, but was there before
    assert found.alive == (0, 1, 2)


FIRST_DESIGNS = ((0, 1, 0.25), (1, 1, 0.5), (2, 1, 0.75))  # their mean, 0.5, is exact


def test_further_hurdles_come_from_those_that_reached_them() -> None:
    # designs 3 and 5 cleared the first hurdle of 0.5, design 4 did not
    second = ((3, 1, 0.6), (3, 3, 0.7), (4, 1, 0.4), (5, 1, 0.9), (5, 3, 0.8))
    found = stand(history(*FIRST_DESIGNS, *second))
    assert heights(found) == [0.5, 0.75]
    third = ((6, 1, 0.55), (6, 3, 0.75), (7, 1, 0.55), (7, 3, 0.76))
    assert stand(history(*FIRST_DESIGNS, *second, *third)).due == (7,)
    # the last rung has no hurdle
    last = ((7, 9, 0.9), (8, 1, 0.3), (9, 1, 0.3), (10, 1, 0.3), (11, 1, 0.3))
    assert heights(stand(history(*FIRST_DESIGNS, *second, *third, *last))) == [0.5, 0.75]


def test_a_batch_in_which_nobody_came_so_far_sets_no_hurdle() -> None:
    second = ((3, 1, 0.1), (4, 1, 0.2), (5, 1, 0.3))
    assert heights(stand(history(*FIRST_DESIGNS, *second))) == [0.5]
    third = ((6, 1, 0.6), (6, 3, 0.65), (7, 1, 0.1), (8, 1, 0.1))
    assert heights(stand(history(*FIRST_DESIGNS, *second, *third))) == [0.5, 0.65]


def test_a_hurdle_waits_for_the_slowest_and_for_slices_that_were_earned() -> None:
    early = ((0, 1, 0.25), (1, 1, None, "pending"), (2, 1, 0.75), (3, 1, 0.6), (4, 1, 0.4))
    waiting = stand(history(*early))
    assert (heights(waiting), waiting.due, waiting.alive) == ([], (), (0, 2, 3, 4))
    late = history(early[0], (1, 1, 0.5), *early[2:])
    assert (heights(stand(late)), stand(late).due) == ([0.5], (3,))
    # designs 3 and 5 cleared the first hurdle of 0.5; only 5 was trained on so far
    second = ((3, 1, 0.6), (4, 1, 0.4), (5, 1, 0.9), (5, 3, 0.8))
    waiting = stand(history(*FIRST_DESIGNS, *second))
    assert (heights(waiting), waiting.due) == ([0.5], (3,))
    assert heights(stand(history(*FIRST_DESIGNS, *second, (3, 3, 0.7)))) == [0.5, 0.75]


def test_a_hurdle_never_changes_whatever_comes_later() -> None:
    rows: list[tuple[int, int, float]] = [*FIRST_DESIGNS]
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


def test_failed_designs_and_slices_under_way() -> None:
    for state in ("pending", "failed"):
        assert stand(history(*FIRST_DESIGNS, (3, 1, 0.9), (3, 3, None, state))).due == ()
    # who failed leaves the population
    assert stand(history(*FIRST_DESIGNS, (3, 1, 0.9), (3, 3, None, "failed"))).alive == (0, 1, 2)
    past = history((0, 1, 0.2), (1, 1, None, "failed"), (2, 1, 0.4))
    assert heights(stand(past)) == [pytest.approx(0.3)]
    nobody = history(*[(design, 1, None, "failed") for design in range(3)])
    assert (heights(stand(nobody)), stand(nobody).alive) == ([], ())


def test_the_population_loses_its_least_fit_and_sets_the_hurdle_alone() -> None:
    # everybody is drawn, so that the worst of the population goes: 0.1, then 0.2, then the child that came with 0.15
    past = history((0, 1, 0.3), (1, 1, 0.1), (2, 1, 0.2), (3, 1, 0.4), (4, 1, 0.15), (5, 1, 0.5))
    assert stand(past, population=3, tournament=3, batch=50).alive == (0, 3, 5)
    for length, alive in [(4, (0, 3, 2)), (5, (0, 3, 4))]:
        assert stand(History(past.trials[:length]), population=3, tournament=3, batch=50).alive == alive
    past = history((0, 1, 0.25), (1, 1, 0.125), (2, 1, 0.5), (3, 1, 0.75))
    assert heights(stand(past, population=2, tournament=2, batch=4)) == [0.625]


def scores(*rows: Sequence[float], violations: Sequence[float] | None = None) -> Scores:
    return Scores(np.array(rows), np.zeros(len(rows)) if violations is None else np.array(violations))


def test_fitness() -> None:
    assert fitness(scores([-0.5], [-0.25]), scores([0.0])).tolist() == [0.5, 0.25]
    group = scores([1, 4], [2, 2], [4, 1], [3, 3], [4, 4])
    assert fitness(group, group).tolist() == [0, 0, 0, -1, -4]
    hurdle = Hurdle.of(group)
    assert hurdle.height == -1.0
    assert not hurdle.cleared_by(scores([3, 3]))  # exactly as good as the mean
    assert hurdle.cleared_by(scores([5, 0]))
    group = scores([-0.9], [-0.1], [-0.5], violations=[2.0, 0.0, 1.0])
    assert fitness(group, group).tolist() == [-2, 0, -1]
    # a limit that nobody broke before is not cleared by breaking it
    assert not Hurdle.of(scores([-0.1], [-0.2])).cleared_by(scores([-0.9], violations=[0.5]))
    # where all break a limit, who breaks it less than most goes on
    assert Hurdle.of(scores([-0.1], [-0.2], violations=[1.0, 2.0])).cleared_by(scores([-0.1], violations=[0.5]))
