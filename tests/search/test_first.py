"""Designs of interest come first, in their order, and then the searcher."""

from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.core.rng import derive
from formwright.search.first import First
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.searcher_contract import SearcherContract
from formwright.testing.spaces import small

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


def test_designs_are_asked_for_in_their_order_and_none_twice() -> None:
    beyond = Beyond([])
    assert asks(First(SPACE, CHOSEN, beyond), 4) == [DESIGNS[7], DESIGNS[3], DESIGNS[100], DESIGNS[0]]
    (history,) = beyond.asked
    assert len(history.trials) == 3  # the searcher sees what came before it


def test_a_design_is_asked_for_whole() -> None:
    request = First(SPACE, CHOSEN, Beyond([])).ask(History(), derive(0))
    assert (request.card, request.budget, request.parent) == (SPACE.card(DESIGNS[7]), Budget.full(), None)


def test_designs_beyond_the_limits_are_left_to_the_searcher() -> None:
    forbidden = SPACE.card(DESIGNS[3]).digest
    beyond = Beyond([])
    found = asks(First(SPACE, CHOSEN, beyond, lambda card: card.digest != forbidden), 3)
    assert found == [DESIGNS[7], DESIGNS[100], DESIGNS[0]]


def test_what_others_asked_for_is_not_asked_for_again() -> None:
    history = History((Trial(0, Request(SPACE.card(DESIGNS[7]))),))
    assert First(SPACE, CHOSEN, Beyond([])).ask(history, derive(0)).design == DESIGNS[3]


def test_without_designs_the_searcher_has_its_say_at_once() -> None:
    beyond = Beyond([])
    assert asks(First(SPACE, (), beyond), 1) == [DESIGNS[0]]
    assert beyond.asked == [History()]
