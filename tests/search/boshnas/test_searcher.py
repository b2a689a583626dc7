import sys
from collections.abc import Callable
from subprocess import run as run_process

import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.search.boshnas import searcher as module
from formwright.search.boshnas.searcher import Boshnas
from formwright.search.listing import listing
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything, random_unseen
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.loop import ask, outline, run, tell
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import large, small

GOAL = (ACCURACY,)


class TestBoshnas(SearcherContract):
    trials = 9

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Boshnas:
        return Boshnas(space, objectives, legal, initial=4, coordinates="one-hot")


@pytest.mark.slow
class TestExhaustive(SearcherContract):
    trials = 9

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Boshnas:
        return Boshnas(
            space, objectives, legal, initial=4, coordinates="one-hot", acquire="exhaustive", heteroscedastic=False
        )


def test_it_begins_with_random_designs() -> None:
    history, searcher = History(), Boshnas(small(), GOAL, initial=5, beta=0.0, coordinates="one-hot")
    for number in range(5):
        rng = derive(0, "ask", number)
        rng.random()
        expected = random_unseen(small(), history, rng)
        history = ask(searcher, history, seed=0)
        assert history.trials[-1].request.card == expected.card


def test_it_is_random_where_beta_says_so() -> None:
    history = run(Boshnas(small(), GOAL, initial=4, coordinates="one-hot"), Toy(), 6)
    rng = derive(60)
    rng.random()
    expected = random_unseen(small(), history, rng)
    assert Boshnas(small(), GOAL, initial=4, alpha=0.0, beta=1.0).ask(history, derive(60)).card == expected.card


def test_one_draw_decides_between_the_bound_uncertainty_and_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def order(name: str) -> Callable[..., list[int]]:
        return lambda *given: taken.append(name) or [0]  # type: ignore[func-returns-value]

    monkeypatch.setattr(module, "fit", lambda *given: None)
    monkeypatch.setattr(module, "climb", order("bound"))
    monkeypatch.setattr(module, "most_uncertain", order("uncertainty"))
    searcher = Boshnas(small(), GOAL, initial=4, alpha=0.25, beta=0.25, coordinates="one-hot")
    history = run(RandomSearch(small(), GOAL), Toy(), 6)
    draws = [derive(seed).random() for seed in range(40)]
    for seed in range(40):
        searcher.ask(history, derive(seed))
    assert taken == ["bound" if draw < 0.5 else "uncertainty" for draw in draws if draw < 0.75]
    assert 5 < taken.count("uncertainty") < taken.count("bound") < 30


def test_options_change_what_is_asked_for() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 12)
    plain = {"initial": 4, "alpha": 0.0, "beta": 0.0, "coordinates": "one-hot"}
    for change in ({"alpha": 1.0}, {"k1": 50.0}, {"k2": 50.0}, {"heteroscedastic": False}, {"acquire": "gobi-nearest"}):
        searchers = [Boshnas(space, GOAL, **{**plain, **options}) for options in ({}, change)]
        asked = ([searcher.ask(history, derive(seed)) for searcher in searchers] for seed in range(3))
        assert any(first != second for first, second in asked), change


def test_every_way_to_look_for_the_highest_bound_works() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 12)
    for acquire in ("gobi", "gobi-nearest", "exhaustive"):
        for second_order in (True, False):
            searcher = make_searcher(
                "boshnas",
                space,
                GOAL,
                initial=4,
                beta=0.0,
                coordinates="one-hot",
                acquire=acquire,
                second_order=second_order,
            )
            assert searcher.ask(history, derive(62)).card.digest not in history.digests


@pytest.mark.slow
def test_a_space_too_large_to_list_is_searched_near_its_best_designs() -> None:
    space = large()
    history = run(Boshnas(space, GOAL, initial=6, alpha=0.0, beta=0.0, coordinates="one-hot"), Toy(), 9)
    assert len(set(history.digests)) == 9
    assert any(trial.request.card.digest not in listing(space, "one-hot").row for trial in history.trials[6:])
    assert all(space.contains(trial.request.design) for trial in history.trials)


def test_a_user_s_own_card_that_is_not_listed_is_not_learnt_from() -> None:
    space, searcher = small(), Boshnas(small(), GOAL, initial=2, beta=0.0, coordinates="one-hot")
    own = large().card(large().sample(derive(63)))
    history = tell(History((Trial(0, Request(own)),)), 0, Toy().evaluate(Request(own)))
    for number in range(1, 6):
        history = tell(ask(searcher, history, 0), number, Toy().evaluate(ask(searcher, history, 0).trials[-1].request))
    assert len(outline(history)) == 6
    assert all(space.contains(trial.request.design) for trial in history.trials[1:])


def test_all_faults_of_the_options_are_told_at_once() -> None:
    with pytest.raises(IllegalInput) as caught:
        make_searcher(
            "boshnas",
            small(),
            GOAL,
            initial=0,
            k1=-1,
            beta=2,
            second_order="yes",
            coordinates="two-hot",
            acquire="luck",
        )
    faults = ("initial is 0", "k1 is -1", "beta is 2", "second_order is 'yes'", "coordinates is 'two-hot'")
    for fault in (*faults, "acquire is 'luck'"):
        assert fault in str(caught.value)
    with pytest.raises(IllegalInput, match="alpha and beta"):
        Boshnas(small(), GOAL, alpha=0.6, beta=0.6)


def test_a_small_budget_begins_with_fewer_designs() -> None:
    assert [Boshnas.for_budget(trials, None)["initial"] for trials in (None, 1000, 30, 5)] == [12, 12, 6, 3]


def test_it_needs_no_torch() -> None:
    code = "import sys; from formwright.search.boshnas.searcher import Boshnas; sys.exit('torch' in sys.modules)"
    assert run_process([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_beats_random_search() -> None:
    space = load_space("flexibert-nano")
    problem = Smooth(space)
    ours = [problem.better(Boshnas(space, GOAL, coordinates="one-hot"), 40, seed) for seed in range(2)]
    theirs = [problem.better(RandomSearch(space, GOAL), 40, seed) for seed in range(6)]
    assert np.mean(ours) < 0.3 * np.mean(theirs)
