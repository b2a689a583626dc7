import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.search.bananas import Bananas
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.loop import run
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import small

GOAL = (ACCURACY,)


@pytest.mark.slow
class TestBananas(SearcherContract):
    trials = 12

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Bananas:
        return Bananas(space, objectives, legal, members=3, candidates=30, initial=6)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
def test_it_beats_random_search() -> None:
    space = load_space("flexibert-nano")
    problem = Smooth(space)
    modelled = [problem.better(Bananas(space, GOAL), 60, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(space, GOAL), 60, seed) for seed in range(12)]
    assert np.mean(modelled) < 0.3 * np.mean(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["path", "one-hot"])
def test_it_finds_good_designs_of_a_small_space_by_any_coordinates(coordinates: str) -> None:
    searcher = Bananas(small(), GOAL, coordinates=coordinates, initial=8)  # type: ignore[arg-type]
    assert Smooth(small()).better(searcher, 30, seed=0) < 0.02


@pytest.mark.slow
def test_most_proposals_are_mutants_of_the_best() -> None:
    space = small()
    searcher = Bananas(space, GOAL, parents=1, initial=8)
    history = run(searcher, Smooth(space), 16)
    scores = [trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation]
    best = history.trials[int(np.argmax(scores))].request.design
    near = {space.card(space.mutate(best, derive(seed))).digest for seed in range(300)}
    asked = [searcher.ask(history, derive(seed)).card.digest for seed in range(10)]
    assert sum(digest in near for digest in asked) > 5
    assert len(set(asked)) > 1  # scores are drawn, so that not all workers ask for the same


def test_small_budgets_have_few_random_designs() -> None:
    assert Bananas.for_budget(None, None) == {"initial": 12}
    assert Bananas.for_budget(20, None) == {"initial": 4}


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"coordinates is 'polar'.*members is 1.*initial is 0.*parents is -1"):
        Bananas(small(), GOAL, anything, "polar", 1, 100, -1, 0)  # type: ignore[arg-type]
