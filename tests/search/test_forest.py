import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.search.forest import Forest, grown
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.loop import ask, tell
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import small

GOAL = (ACCURACY,)


@pytest.mark.slow
class TestForest(SearcherContract):
    trials = 14

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Forest:
        return Forest(space, objectives, legal, trees=6, initial=6)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
def test_it_beats_random_search() -> None:
    space = load_space("flexibert-nano")
    problem = Smooth(space)
    modelled = [problem.better(Forest(space, GOAL), 60, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(space, GOAL), 60, seed) for seed in range(12)]
    assert np.mean(modelled) < 0.5 * np.mean(drawn)


@pytest.mark.long
def test_it_beats_random_search_in_a_small_space() -> None:
    problem = Smooth(small())
    found = [problem.better(Forest(small(), GOAL, initial=8), 40, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(small(), GOAL), 40, seed) for seed in range(8)]
    assert np.mean(found) < np.mean(drawn)


def test_a_forest_learns_what_choices_do_together() -> None:
    points = derive(0).integers(2, size=(200, 6)).astype(float)
    scores = np.where(points[:, 0] == points[:, 1], 1.0, -1.0)
    queries = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]], np.float32)
    found = grown(points, scores, queries, 20, derive(1))
    assert found.shape == (20, 3)
    assert found.mean(axis=0) == pytest.approx([1, 1, -1], abs=0.5)
    assert np.array_equal(found, grown(points, scores, queries, 20, derive(1)))
    assert not np.array_equal(found, grown(points, scores, queries, 20, derive(2)))


def test_pending_trials_are_believed_to_end_as_expected() -> None:
    searcher = Forest(small(), GOAL, initial=4)
    # a failed trial is neither asked for again nor believed
    assert Smooth(small()).asks_otherwise_for_pending(searcher)


def test_the_first_designs_are_random() -> None:
    searcher = Forest(small(), GOAL, initial=3)
    history = History()
    for number in range(4):
        history = ask(searcher, history, seed=0)
        drawn = ask(RandomSearch(small(), GOAL, by="gene"), History(history.trials[:number]), seed=0)
        assert (history.trials[number] == drawn.trials[number]) == (number < 3)
        history = tell(history, number, Toy().evaluate(history.trials[number].request))


def test_small_budgets_have_few_random_designs() -> None:
    assert Forest.for_budget(30, None) == {"initial": 6}


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"coordinates is 'polar'.*trees is 1.*initial is 0"):
        Forest(small(), GOAL, anything, "polar", 1, 0)  # type: ignore[arg-type]
