from itertools import pairwise

from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.search.local import LocalSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.loop import ask, run, tell
from formwright.testing.objective import Toy, accuracy
from formwright.testing.searcher_contract import ACCURACY, PARAMS, SearcherContract
from formwright.testing.spaces import small


class TestLocalSearch(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> LocalSearch:
        return LocalSearch(space, objectives, legal)


def accuracies(history: History) -> dict[int, float]:
    return {trial.number: trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation}


def test_a_trial_is_a_neighbour_of_its_climbs_best_so_far() -> None:
    space = small()
    history = run(LocalSearch(space, (ACCURACY,)), Toy(), 60)
    reached = accuracies(history)
    start = 0
    for trial in history.trials:
        parent = trial.request.parent
        if parent is None:
            start = trial.number
            continue
        assert trial.request.design in space.neighbours(history.trials[parent].request.design)
        assert reached[parent] == max(reached[number] for number in range(start, trial.number))


def test_it_starts_anew_only_where_no_neighbour_is_better() -> None:
    space = small()
    history = run(LocalSearch(space, (ACCURACY,)), Toy(), 150)
    reached = accuracies(history)
    restarts = [trial.number for trial in history.trials if trial.request.parent is None]
    assert len(restarts) > 2
    for begin, end in pairwise(restarts):
        top = max(range(begin, end), key=reached.__getitem__)
        asked = {trial.request.card.digest for trial in history.trials[:end]}
        assert {space.card(near).digest for near in space.neighbours(history.trials[top].request.design)} <= asked


def test_it_finds_the_best_of_a_small_space() -> None:
    space = small()
    best = max(accuracy(space.card(design)) for design in space.enumerate())
    assert max(accuracies(run(LocalSearch(space, (ACCURACY,)), Toy(), 80)).values()) == best


def test_several_goals_climb_from_the_whole_front() -> None:
    history = run(LocalSearch(small(), (ACCURACY, PARAMS)), Toy(), 60)
    parents = {trial.request.parent for trial in history.trials if trial.request.parent is not None}
    assert len(parents) > 3
    assert sum(trial.request.parent is None for trial in history.trials) < 5


def test_starts_that_workers_made_side_by_side_are_climbed_one_by_one() -> None:
    searcher, history = LocalSearch(small(), (ACCURACY,)), History()
    for _ in range(3):
        history = ask(searcher, history, seed=0)
    assert [trial.request.parent for trial in history.trials] == [None] * 3
    for number in (2, 0, 1):
        history = tell(history, number, Toy().evaluate(history.trials[number].request))
    assert searcher.ask(history, derive(0)).parent == 2


def test_a_failed_neighbour_is_passed_over() -> None:
    searcher, history = LocalSearch(small(), (ACCURACY,)), run(LocalSearch(small(), (ACCURACY,)), Toy(), 1)
    history = tell(ask(searcher, history, seed=0), 1, "no memory")
    following = ask(searcher, history, seed=0).trials[2].request
    assert following.parent == 0
    assert following.card.digest not in history.digests
