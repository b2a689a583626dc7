import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.search.gp_bo import GpBo
from formwright.search.listing import listing
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.loop import ask, run, tell
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import layered, small

GOAL = (ACCURACY,)


@pytest.mark.slow
class TestGpBo(SearcherContract):
    trials = 14

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> GpBo:
        return GpBo(space, objectives, legal, "one-hot", initial=6)


@pytest.mark.slow
@pytest.mark.long
class TestUpperConfidenceBound(SearcherContract):
    trials = 14

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> GpBo:
        return GpBo(space, objectives, legal, "one-hot", "ucb", initial=6)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
def test_it_beats_random_search() -> None:
    space = load_space("flexibert-nano")
    problem = Smooth(space)
    modelled = [problem.better(GpBo(space, GOAL, coordinates="one-hot"), 60, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(space, GOAL), 60, seed) for seed in range(12)]
    assert np.mean(modelled) < 0.2 * np.mean(drawn)
    assert max(modelled) < 0.002


def test_it_finds_the_best_of_a_small_space() -> None:
    problem = Smooth(small())
    assert problem.better(GpBo(small(), GOAL, coordinates="one-hot", initial=8), 30, seed=0) == 0.0


@pytest.mark.slow
def test_a_space_too_large_to_list_is_searched_beyond_the_pool() -> None:
    space = layered("unlisted", (4,), (16, 32, 64), (3, 5, 9))
    listed, problem = listing(space, "one-hot"), Smooth(space)
    assert not listed.whole
    history = run(GpBo(space, GOAL, coordinates="one-hot", initial=10), problem, 30)
    assert any(trial.request.card.digest not in listed.row for trial in history.trials[10:])
    best = max(problem.score(trial.request.design) for trial in history.trials)
    assert best > max(map(problem.score, listed.designs[:1_000]))


def test_pending_trials_are_believed() -> None:
    space = small()
    searcher = GpBo(space, GOAL, coordinates="one-hot", initial=4)
    # a failed trial is neither asked for again nor believed
    assert Smooth(space).asks_otherwise_for_pending(searcher)


def test_a_listed_card_without_a_design_is_learnt_from() -> None:
    space = small()
    problem = Smooth(space)
    searcher = GpBo(space, GOAL, coordinates="one-hot", initial=2)
    history = run(searcher, problem, 10)
    bare = [Trial(t.number, Request(t.request.card), t.state, t.observation) for t in history.trials]
    assert searcher.ask(History(tuple(bare)), derive(1)) == searcher.ask(history, derive(1))


def test_the_first_designs_are_random() -> None:
    searcher = GpBo(small(), GOAL, coordinates="one-hot", initial=3)
    history = History()
    for number in range(4):
        history = ask(searcher, history, seed=0)
        drawn = ask(RandomSearch(small(), GOAL, by="gene"), History(history.trials[:number]), seed=0)
        assert (history.trials[number] == drawn.trials[number]) == (number < 3)
        history = tell(history, number, Toy().evaluate(history.trials[number].request))


def test_small_budgets_have_few_random_designs() -> None:
    assert GpBo.for_budget(None, None) == {"initial": 12}
    assert GpBo.for_budget(100, None) == {"initial": 12}
    assert GpBo.for_budget(30, None) == {"initial": 6}
    assert GpBo.for_budget(1, None) == {"initial": 3}


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"coordinates is 'polar'.*acquisition is 'pi'.*initial is 1"):
        GpBo(small(), GOAL, anything, "polar", "pi", 1)  # type: ignore[arg-type]
