from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.hurdles import Hurdles
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.study.contest import replay
from formwright.study.methods import find_methods
from formwright.testing.loop import ask, run, tell
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, PARAMS, SearcherContract
from formwright.testing.spaces import large, small


class TestHurdles(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Hurdles:
        return Hurdles(space, objectives, legal, population=5, tournament=2, batch=5, min_steps=3, max_steps=27)


@pytest.mark.long
class TestHurdlesWithOneGoal(SearcherContract):
    objectives = (ACCURACY,)

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Hurdles:
        return Hurdles(space, objectives, legal, population=6, tournament=3, batch=4, min_steps=3, max_steps=9)


def hurdles(space: Space | None = None, population: int = 4, batch: int = 4) -> Hurdles:
    return Hurdles(space or small(), (ACCURACY,), anything, population, 2, batch, min_steps=3, max_steps=27)


def told(accuracies: list[float], steps: int = 3) -> History:
    """Make a history of so many designs on one rung."""
    space, trials = small(), []
    for number, (design, accuracy) in enumerate(zip(space.enumerate(), accuracies, strict=False)):
        request = Request(space.card(design), Budget(steps), None, design)
        trials.append(Trial(number, request, "finished", Observation({"accuracy": accuracy})))
    return History(tuple(trials))


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
    searcher = Hurdles(space, loss, anything, 4, 2, 4, min_steps=3, max_steps=27)
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
    born, standing, expected = 0, (), None
    for number, trial in enumerate(history.trials):
        if expected is not None:
            assert (trial.request.card.digest, trial.request.budget.steps) == expected
        else:
            assert trial.request.budget.steps == 3
            standing = searcher.hurdles(History(history.trials[:number]))
            assert len(standing) <= born // 8
            born += 1
        assert trial.observation is not None
        rung = (3, 9, 27).index(trial.request.budget.steps or 0)
        above = rung < len(standing) and trial.observation.metrics["accuracy"] > standing[rung]
        expected = (trial.request.card.digest, (9, 27)[rung]) if above else None
    assert len(standing) == 2


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
    standing = searcher.hurdles(history)
    for trial in history.trials:
        if trial.request.budget.steps in (9, 27):
            below = history.trials[trial.request.parent or 0]
            assert below.observation is not None
            assert below.observation.metrics["accuracy"] > standing[0 if trial.request.budget.steps == 9 else 1]


def test_limits_are_kept_by_children_and_later_slices() -> None:
    def legal(card: Any) -> bool:
        return len(card.encoder.layers) <= 6

    searcher = Hurdles(large(), (ACCURACY,), legal, 8, 3, 8, min_steps=3, max_steps=27)
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
        searcher = Hurdles(large(), (ACCURACY,), anything, 12, 4, 12, 3, most)
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


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"population is 0.*batch is True.*eta is 1"):
        Hurdles(small(), (ACCURACY, PARAMS), anything, population=0, batch=True, eta=1)
    with pytest.raises(IllegalInput, match=r"max_steps is 3; .* at least 9"):
        Hurdles(small(), (ACCURACY,), min_steps=9, max_steps=3)
