"""Designs of interest come first, in their order, and then the searcher."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from numpy.random import Generator
from tests.search.contract import Contract

from formwright.core.errors import IllegalDesign
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.cost import params
from formwright.search.baselines import First, LargestFirst, LocalSearch, RandomSearch, total_ranks
from formwright.search.proposals import Legal, anything
from formwright.space import Space
from formwright.testing.searcher_contract import ACCURACY, PARAMS, SearcherContract
from formwright.testing.toy_problem import Toy, accuracy, ask, large, outline, run, small, tell, tiny


class TestRandomSearch(Contract):
    kind = RandomSearch


def depths(searcher: RandomSearch) -> list[int]:
    return [len(trial.request.design["layers"]) for trial in run(searcher, Toy(), 40).trials]  # type: ignore[index]


def test_what_it_draws_by() -> None:
    assert depths(RandomSearch(large())).count(12) == 40
    assert set(depths(RandomSearch(large(), by="gene"))) == {4, 8, 12}
    with pytest.raises(IllegalDesign, match=r"by: .*luck.*design, gene"):
        RandomSearch(small(), by="luck")  # type: ignore[arg-type]


class TestByParameters(Contract):
    kind = LargestFirst


class TestByRank(Contract):
    kind, options = LargestFirst, {"by": "rank"}


def test_sizes_descend_from_the_largest_whatever_the_scores() -> None:
    space = small()
    cards = [space.card(design) for design in space.enumerate()]
    ranks = dict(zip([card.digest for card in cards], total_ranks(cards), strict=True))
    by_params = [params(one.card) for one in outline(run(LargestFirst(space), Toy(), 40))]  # type: ignore[arg-type]
    by_rank = [ranks[one.card.digest] for one in outline(run(LargestFirst(space, by="rank"), Toy(), 40))]
    assert by_params == sorted(map(params, cards), reverse=True)[:40]
    assert by_rank == sorted(ranks.values(), reverse=True)[:40]


def test_limits_and_large_spaces_while_descending() -> None:
    space, most = small(), 0
    sizes = sorted({params(space.card(design)) for design in space.enumerate()})
    most = sizes[len(sizes) // 2]
    first = LargestFirst(space, legal=lambda card: params(card) <= most).ask(History(), derive(0))
    assert params(first.card) == most  # type: ignore[arg-type]
    history = run(LargestFirst(large()), Toy(), 20)
    drawn = [params(large().card(large().sample(derive(seed)))) for seed in range(50)]
    assert min(params(one.card) for one in outline(history)) > sorted(drawn)[40]  # type: ignore[arg-type]
    with pytest.raises(IllegalDesign, match="params, rank"):
        LargestFirst(tiny(), by="depth")  # type: ignore[arg-type]


class TestLocalSearch(Contract):
    kind = LocalSearch


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


SPACE = small()
DESIGNS = tuple(SPACE.enumerate())
CHOSEN = (DESIGNS[7], DESIGNS[3], DESIGNS[7], DESIGNS[100])


def first_designs(space: Space) -> tuple[Design, ...]:
    return tuple(space.sample(derive(number, "first")) for number in range(3))


class TestFirst(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> First:
        return First(space, first_designs(space), RandomSearch(space, objectives, legal), legal)


@dataclass
class Beyond:
    """Note with which history the searcher was asked."""

    asked: list[History]

    def ask(self, history: History, rng: Generator) -> Request:
        self.asked.append(history)
        return Request(SPACE.card(DESIGNS[0]), Budget.full(), None, DESIGNS[0])


def asks(searcher: First, number: int) -> list[Any]:
    trials: list[Trial] = []
    for index in range(number):
        request = searcher.ask(History(tuple(trials)), derive(0, "ask", index))
        trials.append(Trial(index, request))
    return [trial.request.design for trial in trials]


def test_given_designs_come_whole_in_their_order_and_none_twice() -> None:
    beyond = Beyond([])
    assert asks(First(SPACE, CHOSEN, beyond), 4) == [DESIGNS[7], DESIGNS[3], DESIGNS[100], DESIGNS[0]]
    (history,) = beyond.asked
    assert len(history.trials) == 3  # the searcher sees what came before it
    request = First(SPACE, CHOSEN, Beyond([])).ask(History(), derive(0))
    assert (request.card, request.budget, request.parent) == (SPACE.card(DESIGNS[7]), Budget.full(), None)
    history = History((Trial(0, Request(SPACE.card(DESIGNS[7]))),))
    assert First(SPACE, CHOSEN, Beyond([])).ask(history, derive(0)).design == DESIGNS[3]


def test_designs_beyond_the_limits_or_none_are_left_to_the_searcher() -> None:
    forbidden = SPACE.card(DESIGNS[3]).digest
    beyond = Beyond([])
    found = asks(First(SPACE, CHOSEN, beyond, lambda card: card.digest != forbidden), 3)
    assert found == [DESIGNS[7], DESIGNS[100], DESIGNS[0]]
    beyond = Beyond([])
    assert asks(First(SPACE, (), beyond), 1) == [DESIGNS[0]]
    assert beyond.asked == [History()]
