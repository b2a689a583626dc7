import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from formwright.space.zoo import load_space

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def fronts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    from flexibert_kit import fronts

    yield fronts
    for name in [name for name in sys.modules if name.startswith("flexibert_kit")]:
        del sys.modules[name]


def kind(fronts: ModuleType, params: Any, validation: Any, test: Any = None) -> Any:
    scores = np.array(validation, float)
    return fronts.Kind(np.array(params, float), scores, scores if test is None else np.array(test, float))


def test_designs_of_equal_layers_are_uniform(fronts: ModuleType) -> None:
    space = load_space("flexibert-nano")
    cards = [space.card(design) for _, design in zip(range(3000), space.enumerate(), strict=False)]
    for card in cards[::97]:
        first = card.stacks[0].layers[0]
        assert fronts.is_uniform(card) == all(layer == first for layer in card.stacks[0].layers)
    assert 0 < sum(map(fronts.is_uniform, cards)) < len(cards)


def test_a_front_rises_and_has_no_design_that_a_smaller_one_equals(fronts: ModuleType) -> None:
    assert kind(fronts, [5, 1, 3, 3, 2], [0.9, 0.5, 0.6, 0.7, 0.5]).front() == [1, 3, 0]


def test_mixed_designs_are_compared_by_test_and_chosen_by_validation(fronts: ModuleType) -> None:
    uniform = kind(fronts, [10, 20], [0.5, 0.8], [0.4, 0.7])
    mixed = kind(fronts, [8, 20, 30], [0.8, 0.9, 1.0], [0.75, 0.85, 0.6])
    found = fronts.compare(uniform, mixed)["all"]
    assert found["best uniform"] == 0.7
    assert found["best mixed"] == 0.6  # the best on validation
    assert found["mixed minus uniform at its size"] == pytest.approx(0.85 - 0.7)
    assert found["times smaller at equal quality"] == 20 / 8


def test_more_designs_do_not_win_by_their_number(fronts: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "RESAMPLES", 100)
    rng = np.random.default_rng(0)
    few, many = (kind(fronts, np.ones(n), rng.normal(size=n)) for n in (20, 2000))
    found = fronts.compare(few, many)
    assert found["all"]["best mixed"] > found["all"]["best uniform"] + 0.5
    low, _, high = found["equally many (5 %, median, 95 %)"]["mixed minus uniform at its size"]
    assert low < 0 < high
