import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.controller import Controller
from formwright.search.vocabulary import Vocabulary
from formwright.testing.spaces import small, tiny

VOCABULARY = Vocabulary.of(small().root)


def log_probability(controller: Controller, design: object) -> float:
    tokens, possible = VOCABULARY.read(design)
    logs = controller.log_chances(controller.states(tokens)[0], possible)
    return float(logs[np.arange(len(tokens)), tokens].sum())


def entropy(controller: Controller, design: object) -> float:
    tokens, possible = VOCABULARY.read(design)
    logs = controller.log_chances(controller.states(tokens)[0], possible)[possible]
    return float(-(np.exp(logs) * logs).sum())


def test_the_chances_of_all_designs_add_up_to_one() -> None:
    controller = Controller.new(VOCABULARY.size, 6)
    wild = Controller(20 * controller.vector, VOCABULARY.size, 6)
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
    controller = Controller(4 * Controller.new(VOCABULARY.size, 5).vector, VOCABULARY.size, 5)
    design = list(small().enumerate())[200]
    found = controller.gradient(*VOCABULARY.read(design), advantage, weight)

    def aim(vector: np.ndarray) -> float:
        moved = Controller(vector, VOCABULARY.size, 5)
        return advantage * log_probability(moved, design) + weight * entropy(moved, design)

    for place in range(0, len(found), 7):
        nudge = np.zeros_like(found)
        nudge[place] = 1e-5
        slope = (aim(controller.vector + nudge) - aim(controller.vector - nudge)) / 2e-5
        assert found[place] == pytest.approx(slope, abs=1e-7)


def test_every_search_begins_alike_and_undecided() -> None:
    controller = Controller.new(VOCABULARY.size, 32)
    assert np.array_equal(controller.vector, Controller.new(VOCABULARY.size, 32).vector)
    tokens, possible = VOCABULARY.read(next(iter(small().enumerate())))
    chances = np.exp(controller.log_chances(controller.states(tokens)[0], possible))
    even = possible / possible.sum(axis=1, keepdims=True)
    assert np.abs(chances - even).max() < 0.15
