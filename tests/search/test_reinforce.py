from typing import Any

import numpy as np
import pytest
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import History
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.categorical import slots
from formwright.search.reinforce import Controller, Reinforce, Vocabulary
from formwright.space import Choice, Expressions, Record, Repeat, Space, Switch
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import Build, Toy, large, run, small, tiny

GOAL = (ACCURACY,)


class TestReinforce(Contract):
    kind, trials, options = Reinforce, 14, {"hidden": 8}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_beats_random_search() -> None:
    space = load_space("flexibert-nano")
    problem = Smooth(space)
    learnt = [problem.better(Reinforce(space, GOAL), 60, seed) for seed in range(8)]
    drawn = [problem.better(RandomSearch(space, GOAL), 60, seed) for seed in range(12)]
    assert np.mean(learnt) < 0.7 * np.mean(drawn)


@pytest.mark.slow
def test_it_comes_to_write_what_was_rewarded() -> None:
    space = large()

    def attentive(design: Any) -> float:
        layers = design["layers"]
        return sum(layer["mixer"].tag == "attention" for layer in layers) / len(layers)

    class Attentive(Toy):
        def evaluate(self, request: Any, context: Any = None) -> Any:
            found = super().evaluate(request)
            return type(found)({"accuracy": attentive(request.design)})

    history = run(Reinforce(space, GOAL, hidden=16), Attentive(), 120)
    shares = [attentive(trial.request.design) for trial in history.trials]
    assert np.mean(shares[-20:]) > np.mean(shares[:20]) + 0.3


def test_a_proposal_does_not_depend_on_what_was_asked_before() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 12)
    warm = Reinforce(space, GOAL, hidden=8)
    for length in (3, 12, 7, 8):
        past = History(history.trials[:length])
        assert warm.ask(past, derive(1)) == Reinforce(space, GOAL, hidden=8).ask(past, derive(1))
    other = History(tuple(reversed(history.trials)))
    assert warm.ask(other, derive(1)) == Reinforce(space, GOAL, hidden=8).ask(other, derive(1))


def test_an_entropy_bonus_keeps_it_undecided() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Smooth(space), 60)

    def variety(entropy: float) -> int:
        searcher = Reinforce(space, GOAL, learning_rate=0.2, entropy=entropy, hidden=8)
        return len({searcher.ask(history, derive(seed)).card.digest for seed in range(20)})

    assert variety(1.0) > 2 * variety(0.0)


def test_constraints_are_kept_even_where_the_controller_never_meets_them() -> None:
    space = small().restrict("two layers", lambda card: card.encoder is not None and len(card.encoder.layers) == 2)
    for trial in run(Reinforce(space, GOAL, hidden=8), Toy(), 15).trials:
        assert space.contains(trial.request.design)
    whole = tiny()
    only = [whole.card(whole.sample(derive(0))), whole.card(whole.sample(derive(3)))]
    space = whole.restrict("two designs", lambda card: card in only)
    history = run(Reinforce(space, GOAL, hidden=8), Toy(), 2)
    assert history.digests == {card.digest for card in only}


def test_a_space_of_one_design_needs_no_controller() -> None:
    layer = Record.of(mixer=Switch.of(attention=Choice(("sdp",))), feed_forward=Choice((16,)))
    space = Space("single", Record.of(layers=Repeat(layer, (1,))), Build())
    assert space.contains(Reinforce(space, GOAL).ask(History(), derive(0)).design)


def test_spaces_without_slots_are_refused() -> None:
    with pytest.raises(IllegalInput, match="cannot search Expressions"):
        Reinforce(load_space("autobert-zero"), GOAL)
    with pytest.raises(IllegalInput, match="cannot search Expressions"):
        Vocabulary.of(Record.of(cell=Expressions(2)))


PART = small().root
VOCABULARY = Vocabulary.of(PART)


def test_every_option_has_a_token_of_its_own_among_those_possible() -> None:
    assert VOCABULARY.size == sum(slot.options for slot in slots(PART))
    read = [tuple(VOCABULARY.read(design)[0].tolist()) for design in small().enumerate()]
    assert len(set(read)) == len(read)
    assert all(len(set(tokens)) == len(tokens) for tokens in read)
    assert set(np.concatenate(read)) == set(range(VOCABULARY.size))
    for design in small().enumerate():
        tokens, possible = VOCABULARY.read(design)
        assert possible[np.arange(len(tokens)), tokens].all()
        assert (possible.sum(axis=1) > 1).all()
        assert (possible.sum(axis=0) <= 1).all()


WORDS = Vocabulary.of(small().root)


def log_probability(controller: Controller, design: object) -> float:
    tokens, possible = WORDS.read(design)
    logs = controller.log_chances(controller.states(tokens)[0], possible)
    return float(logs[np.arange(len(tokens)), tokens].sum())


def entropy(controller: Controller, design: object) -> float:
    tokens, possible = WORDS.read(design)
    logs = controller.log_chances(controller.states(tokens)[0], possible)[possible]
    return float(-(np.exp(logs) * logs).sum())


def test_the_chances_of_all_designs_add_up_to_one() -> None:
    controller = Controller.new(WORDS.size, 6)
    wild = Controller(20 * controller.vector, WORDS.size, 6)
    for one in (controller, wild):
        chances = [np.exp(log_probability(one, design)) for design in small().enumerate()]
        assert sum(chances) == pytest.approx(1.0)


def test_designs_are_drawn_as_often_as_they_are_likely() -> None:
    space = tiny()
    vocabulary = Vocabulary.of(space.root)
    controller = Controller(5 * Controller.new(vocabulary.size, 6).vector, vocabulary.size, 6)
    rng, draws = derive(0), 1_000
    drawn = [controller.draw(vocabulary, rng) for _ in range(draws)]
    for design in space.enumerate():
        tokens, possible = vocabulary.read(design)
        logs = controller.log_chances(controller.states(tokens)[0], possible)
        chance = np.exp(logs[np.arange(len(tokens)), tokens].sum())
        assert drawn.count(design) / draws == pytest.approx(chance, abs=4 * np.sqrt(chance / draws))


@pytest.mark.parametrize(("advantage", "weight"), [(1.0, 0.0), (-0.7, 0.0), (0.0, 1.0), (0.5, 0.3)])
def test_the_gradient_is_that_of_probability_and_entropy(advantage: float, weight: float) -> None:
    controller = Controller(4 * Controller.new(WORDS.size, 5).vector, WORDS.size, 5)
    design = list(small().enumerate())[200]
    found = controller.gradient(*WORDS.read(design), advantage, weight)

    def aim(vector: np.ndarray) -> float:
        moved = Controller(vector, WORDS.size, 5)
        return advantage * log_probability(moved, design) + weight * entropy(moved, design)

    for place in range(0, len(found), 7):
        nudge = np.zeros_like(found)
        nudge[place] = 1e-5
        slope = (aim(controller.vector + nudge) - aim(controller.vector - nudge)) / 2e-5
        assert found[place] == pytest.approx(slope, abs=1e-7)


def test_every_search_begins_alike_and_undecided() -> None:
    controller = Controller.new(WORDS.size, 32)
    assert np.array_equal(controller.vector, Controller.new(WORDS.size, 32).vector)
    tokens, possible = WORDS.read(next(iter(small().enumerate())))
    chances = np.exp(controller.log_chances(controller.states(tokens)[0], possible))
    even = possible / possible.sum(axis=1, keepdims=True)
    assert np.abs(chances - even).max() < 0.15
