from typing import Any

import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.search.random_search import RandomSearch
from formwright.search.reinforce import Reinforce
from formwright.search.unseen import Legal, anything
from formwright.space import Choice, Record, Repeat, Space, Switch
from formwright.space.zoo import load_space
from formwright.testing.loop import run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import Build, large, small, tiny

GOAL = (ACCURACY,)


class TestReinforce(SearcherContract):
    trials = 14

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Reinforce:
        return Reinforce(space, objectives, legal, hidden=8)


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


def test_constraints_of_the_space_are_kept() -> None:
    space = small().restrict("two layers", lambda card: card.encoder is not None and len(card.encoder.layers) == 2)
    for trial in run(Reinforce(space, GOAL, hidden=8), Toy(), 15).trials:
        assert space.contains(trial.request.design)


def test_a_constraint_that_it_never_meets_leaves_mutation_and_draws() -> None:
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


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(IllegalInput, match=r"learning_rate is 2.*entropy is -1.*decay is 'x'.*hidden is 0"):
        Reinforce(small(), GOAL, anything, 2, -1, "x", 0)  # type: ignore[arg-type]
