import sys
import time
from collections.abc import Callable
from subprocess import run as run_process
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.cost import params
from formwright.search import boshnas as module
from formwright.search import make_searcher
from formwright.search.baselines import RandomSearch
from formwright.search.boshnas import (
    Acquire,
    Ascent,
    Boshnas,
    ScaledListing,
)
from formwright.search.listing import Coordinates, listing
from formwright.search.proposals import Proposal, anything, random_unseen
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import Toy, ask, large, outline, run, small, tell

GOAL = (ACCURACY,)


class Sized:
    """Score cards that the toy problem does not know: the smaller, the better."""

    def evaluate(self, request: Request, context: Any = None) -> Observation:
        return Observation({"accuracy": -float(params(request.card))})


class TestBoshnas(Contract):
    kind, trials, options = Boshnas, 9, {"initial": 4, "coordinates": "one-hot"}


@pytest.mark.slow
@pytest.mark.long
class TestExhaustive(Contract):
    kind, trials = Boshnas, 9
    options: ClassVar = {"initial": 4, "coordinates": "one-hot", "acquire": "exhaustive", "heteroscedastic": False}


@pytest.mark.slow
class TestDefaults(Contract):
    kind, trials = Boshnas, 16  # twelve are random


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


@pytest.mark.parametrize(("acquire", "name"), [("gobi", "climb"), ("gobi-nearest", "climb_to_nearest")])
@pytest.mark.parametrize("second_order", [True, False])
def test_the_ascent_has_the_order_asked_for(
    acquire: Acquire, name: str, second_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Ascent] = []
    monkeypatch.setattr(module, "fit", lambda *_: None)
    monkeypatch.setattr(module, name, lambda bound, points, ascent, rng: given.append(ascent) or [0])
    searcher = Boshnas(
        small(), GOAL, alpha=0.0, beta=0.0, second_order=second_order, coordinates="one-hot", acquire=acquire
    )
    searcher.ask(run(RandomSearch(small(), GOAL), Toy(), 12), derive(0))
    assert given == [Ascent(second_order)]


@pytest.mark.parametrize("coordinates", ["transformer2vec", "transformer2vec-ordered", "one-hot"])
def test_designs_are_learnt_from_and_looked_for_by_the_coordinates_asked_for(
    coordinates: Coordinates, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[np.ndarray] = []
    monkeypatch.setattr(module, "fit", lambda x, *_: given.append(x))
    monkeypatch.setattr(module, "climb", lambda bound, points, *_: given.append(points) or [0])
    history = run(RandomSearch(small(), GOAL), Toy(), 12)
    Boshnas(small(), GOAL, alpha=0.0, beta=0.0, coordinates=coordinates).ask(history, derive(0))
    terrain = ScaledListing.of(listing(small(), coordinates), anything)
    assert np.array_equal(given[0], terrain.place([trial.request for trial in history.trials]))
    assert np.array_equal(given[1], terrain.candidates(history).points)


def test_every_way_to_look_for_the_highest_bound_works() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 12)
    for acquire in ("gobi", "gobi-nearest", "exhaustive"):
        for second_order in (True, False):
            options = {"coordinates": "one-hot", "acquire": acquire, "second_order": second_order}
            searcher = make_searcher("boshnas", space, GOAL, initial=4, beta=0.0, **options)
            assert searcher.ask(history, derive(62)).card.digest not in history.digests


@pytest.mark.long
@pytest.mark.slow
def test_a_space_too_large_to_list_is_searched_near_its_best_designs() -> None:
    space = large()
    history = run(Boshnas(space, GOAL, initial=6, alpha=0.0, beta=0.0, coordinates="one-hot"), Toy(), 9)
    assert len(set(history.digests)) == 9
    assert any(trial.request.card.digest not in listing(space, "one-hot").row for trial in history.trials[6:])
    assert all(space.contains(trial.request.design) for trial in history.trials)


@pytest.mark.slow
def test_a_published_space_too_large_to_list_is_searched_by_its_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    climbed: list[int] = []
    climb = module.climb
    monkeypatch.setattr(module, "climb", lambda *given: climbed.append(1) or climb(*given))
    space = load_space("flexibert-s1star")
    searcher = Boshnas(space, GOAL, alpha=0.0, beta=0.0)
    history = run(searcher, Sized(), searcher.initial + 3)
    assert len(climbed) == 3
    assert len(history.digests) == searcher.initial + 3
    assert all(space.contains(trial.request.design) for trial in history.trials)


def test_a_user_s_own_card_that_is_not_listed_is_not_learnt_from() -> None:
    space, searcher = small(), Boshnas(small(), GOAL, initial=2, beta=0.0, coordinates="one-hot")
    own = large().card(large().sample(derive(63)))
    history = tell(History((Trial(0, Request(own)),)), 0, Toy().evaluate(Request(own)))
    for number in range(1, 6):
        history = tell(ask(searcher, history, 0), number, Toy().evaluate(ask(searcher, history, 0).trials[-1].request))
    assert len(outline(history)) == 6
    assert all(space.contains(trial.request.design) for trial in history.trials[1:])


def test_it_needs_no_torch() -> None:
    code = "import sys; from formwright.search.boshnas import Boshnas; sys.exit('torch' in sys.modules)"
    assert run_process([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_proposal_takes_less_than_two_seconds_after_100_of_9312_designs() -> None:
    space = load_space("flexibert-nano")
    searcher = Boshnas(space, GOAL, alpha=0.0, beta=0.0)
    history = run(RandomSearch(space, GOAL), Smooth(space), 100)
    searcher.ask(history, derive(0))  # the first proposal also embeds the space
    started = time.process_time()
    searcher.ask(history, derive(1))
    assert time.process_time() - started < 2
    assert len(listing(space).points) == 9_312


def beside_random_search(problem: int, *options: dict[str, Any]) -> list[float]:
    """Return the share of designs that are better than what 40 trials find, divided by that of random search."""
    space = load_space("flexibert-nano")
    smooth = Smooth(space, problem)
    drawn = np.mean([smooth.better(RandomSearch(space, GOAL), 40, seed) for seed in range(10)])
    searchers = [Boshnas(space, GOAL, **one) for one in options]
    return [float(np.mean([smooth.better(one, 40, seed) for seed in range(2)]) / drawn) for one in searchers]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("problem", [0, pytest.param(2, marks=pytest.mark.long)])
def test_as_shipped_it_beats_random_search_on_half_of_the_problems(problem: int) -> None:
    assert beside_random_search(problem, {})[0] < 0.5


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("problem", [1, 3])
def test_as_shipped_it_does_not_where_scores_ignore_the_distance_of_designs(problem: int) -> None:
    """Its documentation says so. Whoever improves that is welcome to change this test, and the sentence."""
    shipped, plain = beside_random_search(problem, {}, {"coordinates": "one-hot"})
    assert plain < 0.5 < shipped


def test_pending_trials_are_learnt_from_as_if_they_had_ended_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []
    fit = module.fit
    monkeypatch.setattr(module, "fit", lambda x, *rest: fitted.append(len(x)) or fit(x, *rest))
    searcher = Boshnas(small(), (ACCURACY,), initial=4, alpha=0.0, beta=0.0)
    history = run(searcher, Toy(), 6)
    fitted.clear()
    searcher.ask(history, derive(0))
    searcher.ask(ask(searcher, history, seed=0), derive(0))
    assert fitted == [6, 6, 6, 7]  # alone, to ask for the pending one, and twice beside it


def test_points_are_scaled_by_one_number() -> None:
    space = small()
    listed = listing(space, "one-hot")
    scaled = ScaledListing.of(listed, anything).candidates(History()).points
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.mean(scaled**2), 1, rtol=1e-4)
    ratios = np.linalg.norm(scaled[1:] - scaled[0], axis=1) / np.linalg.norm(
        listed.points[1:] - listed.points[0], axis=1
    )
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)


def test_designs_that_are_not_listed_join_at_the_end() -> None:
    space = large()
    terrain = ScaledListing.of(listing(space, "one-hot"), anything)
    more = [Proposal(design, space.card(design)) for design in (space.sample(derive(seed)) for seed in range(3))]
    candidates = terrain.candidates(History(), more)
    np.testing.assert_array_equal(candidates.points[-3:], terrain.place(more))
