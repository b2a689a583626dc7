import numpy as np
import pytest

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.search.evolution import RegularizedEvolution
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.loop import ask, run, tell
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, PARAMS, SearcherContract
from formwright.testing.spaces import large, small


class TestRegularizedEvolution(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> RegularizedEvolution:
        return RegularizedEvolution(space, objectives, legal, population=8, tournament=3)


def best(history: History) -> float:
    return max(trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation)


@pytest.mark.slow
def test_it_beats_random_search() -> None:
    goal = (ACCURACY,)
    evolved = [best(run(RegularizedEvolution(large(), goal, anything, 20, 5), Toy(), 150, seed)) for seed in range(4)]
    drawn = [best(run(RandomSearch(large(), goal), Toy(), 150, seed)) for seed in range(4)]
    assert min(evolved) > max(drawn) + 0.05


def test_a_child_is_one_gene_from_its_parent() -> None:
    space = large()
    for trial in run(RegularizedEvolution(space, (ACCURACY,), anything, 5, 2), Toy(), 30).trials[5:]:
        parent = trial.request.parent
        assert parent is not None
        assert trial.number - 5 <= parent < trial.number  # the older ones are dead


def test_the_whole_population_in_the_tournament_makes_the_best_win() -> None:
    # a tournament of hundreds drawn from five leaves nobody out
    searcher = RegularizedEvolution(small(), (ACCURACY,), anything, population=5, tournament=500)
    history = run(searcher, Toy(), 5)
    accuracies = [trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation]
    assert searcher.ask(history, derive(1)).parent == int(np.argmax(accuracies))


def test_several_goals_leave_only_the_first_front_as_parents() -> None:
    searcher = RegularizedEvolution(small(), (ACCURACY, PARAMS), anything, population=12, tournament=500)
    history = run(searcher, Toy(), 12)
    points = [trial.observation.metrics for trial in history.finished if trial.observation]
    parent = searcher.ask(history, derive(1)).parent
    assert parent is not None
    mine = points[parent]
    assert not any(
        other["accuracy"] >= mine["accuracy"] and other["params"] <= mine["params"] and other != mine
        for other in points
    )


def test_failed_trials_are_replaced_before_evolution_starts() -> None:
    searcher, history = RegularizedEvolution(small(), (ACCURACY,), anything, 4, 2), History()
    for number in range(6):
        history = ask(searcher, history, seed=0)
        assert history.trials[number].request.parent is None
        outcome = "no memory" if number < 2 else Toy().evaluate(history.trials[number].request)
        history = tell(history, number, outcome)
    assert ask(searcher, history, seed=0).trials[6].request.parent in range(2, 6)


def test_small_budgets_have_small_populations() -> None:
    assert RegularizedEvolution.for_budget(None, None) == {"population": 50, "tournament": 10}
    assert RegularizedEvolution.for_budget(1_000, None) == {"population": 50, "tournament": 10}
    assert RegularizedEvolution.for_budget(40, None) == {"population": 10, "tournament": 2}
    assert RegularizedEvolution.for_budget(1, None) == {"population": 4, "tournament": 2}


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"population is 0.*tournament is 1\.5"):
        RegularizedEvolution(small(), (ACCURACY,), anything, 0, 1.5)  # type: ignore[arg-type]


def test_there_must_be_a_goal() -> None:
    with pytest.raises(IllegalInput, match=r"nothing to improve, only limits: params<=5\.0"):
        RegularizedEvolution(small(), (Objective.parse("params<=5"),))
