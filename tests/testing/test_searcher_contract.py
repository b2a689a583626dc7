"""The contract finds searchers that break it: one broken searcher for each promise."""

from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from numpy.random import Generator, default_rng

from formwright.core.records import History, Objective, Request
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.proposals import Legal, anything
from formwright.space import Space
from formwright.testing.searcher_contract import SearcherContract


def request(space: Space, rng: Generator) -> Request:
    design = space.sample(rng)
    return Request(space.card(design), design=design)


@dataclass
class Broken:
    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal
    asked: list[Request] = field(default_factory=list)


class Repeats(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        return request(self.space, derive(0))


class Remembers(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        self.asked.append(RandomSearch(self.space).ask(history, derive(len(self.asked))))
        return self.asked[-1]


class Gambles(Broken):
    before: ClassVar[Request | None] = None

    def ask(self, history: History, rng: Generator) -> Request:
        while (found := RandomSearch(self.space).ask(history, default_rng())) == Gambles.before:
            pass  # two draws from a small space may be equal by chance
        Gambles.before = found
        return found


class ForgetsTheDesign(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        return Request(RandomSearch(self.space).ask(history, rng).card)


class IgnoresLimits(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        return RandomSearch(self.space).ask(history, rng)


class Stumbles(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        assert all(trial.observation for trial in history.trials)
        return RandomSearch(self.space).ask(history, rng)


class NeedsDesigns(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        for trial in history.trials:
            self.space.encode(trial.request.design)
        return RandomSearch(self.space).ask(history, rng)


class HashesText(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        return RandomSearch(self.space).ask(history, derive(hash("text") % 1000, len(history.trials)))


class IgnoresTheGenerator(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        return RandomSearch(self.space).ask(history, derive(0, len(history.trials)))


class ParentsFromTheFuture(Broken):
    def ask(self, history: History, rng: Generator) -> Request:
        found = RandomSearch(self.space).ask(history, rng)
        return Request(found.card, parent=99, design=found.design)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Repeats, "test_nothing_is_asked_for_twice"),
        (Remembers, "test_the_same_history_and_generator_give_the_same_request"),
        (Gambles, "test_the_same_history_and_generator_give_the_same_request"),
        (Gambles, "test_a_history_read_from_json_gives_the_same_request"),
        (ForgetsTheDesign, "test_designs_belong_to_the_space_and_survive_json"),
        (IgnoresLimits, "test_it_asks_for_legal_cards_only_and_for_all_of_them"),
        (Stumbles, "test_failed_trials_do_not_stop_it_and_are_not_repeated"),
        (Stumbles, "test_pending_trials_and_outcomes_out_of_order_do_not_stop_it"),
        (NeedsDesigns, "test_a_card_of_the_users_own_does_not_stop_it"),
        (IgnoresTheGenerator, "test_another_seed_gives_other_designs"),
        (ParentsFromTheFuture, "test_a_parent_is_an_earlier_trial"),
    ],
)
def test_a_broken_promise_is_found(kind: type[Broken], promise: str) -> None:
    class Check(SearcherContract):
        def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Broken:  # type: ignore[override]
            return kind(space, objectives, legal)

    with pytest.raises((AssertionError, AttributeError, TypeError, KeyError)):
        getattr(Check(), promise)()


class CheckHashes(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> HashesText:  # type: ignore[override]
        return HashesText(space, objectives, legal)


def test_the_other_process_hashes_text_differently() -> None:
    with pytest.raises(AssertionError) as caught:
        CheckHashes().test_another_process_asks_the_same()
    assert "Traceback" not in str(caught.value)  # it ran, and asked for other designs


def test_how_a_searcher_is_made_must_be_said() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        SearcherContract()  # type: ignore[abstract]
