"""Importance finds the choice that moves the score, and is silent where nothing can be said."""

from collections.abc import Callable

import pytest
from tests.report.studies import SPACE, design_of

from formwright.core.records import Budget, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.report.choice_importance import FEWEST, ChoiceImportance, importance, readable
from formwright.search.categorical import decompose

GOAL = Objective("accuracy", "max")


def trials(count: int, score: Callable[[dict[str, int], int], float], steps: int | None = None) -> list[Trial]:
    made = []
    for number in range(count):
        design = design_of(number)
        taken = {slot.name: option for slot, option in decompose(SPACE.root, design)}
        budget = Budget(steps and steps * (1 + number % 3))
        found = Observation({"accuracy": score(taken, number)})
        made.append(Trial(number, Request(SPACE.card(design), budget, None, design), "finished", found))
    return made


def first_heads(taken: dict[str, int], number: int) -> float:
    return 0.6 + 0.1 * taken[".layers[0].heads"] + 0.001 * (number % 7)


def test_the_choice_that_moves_the_score_comes_first_every_time() -> None:
    found = importance(SPACE, trials(60, first_heads), GOAL)
    assert found.hidden == ""
    assert found.r2 is not None
    assert found.r2 > 0.8
    assert found.by_place[0].name == "layers 1, heads"
    assert found.by_kind[0].name == "layers, heads"
    assert found.by_place[0].lost > 5 * found.by_place[1].lost
    same = trials(40, first_heads)
    assert importance(SPACE, same, GOAL) == importance(SPACE, same, GOAL)


def test_noise_few_trials_and_equal_scores_say_nothing() -> None:
    rng = derive(0, "noise")
    found = importance(SPACE, trials(60, lambda _, __: float(rng.normal())), GOAL)
    assert "too little" in found.hidden
    assert (found.by_kind, found.by_place) == ((), ())
    found = importance(SPACE, trials(FEWEST - 1, first_heads), GOAL)
    assert all(str(number) in found.hidden for number in (FEWEST - 1, FEWEST))
    assert found == ChoiceImportance(hidden=found.hidden)
    assert "same score" in importance(SPACE, trials(30, lambda _, __: 0.5), GOAL).hidden


def test_training_longer_is_told_apart_from_the_design() -> None:
    found = importance(SPACE, trials(60, lambda _, number: 0.1 * (number % 3), steps=100), GOAL)
    assert found.by_place[0].name == "training steps"


@pytest.mark.parametrize(
    ("slot", "words"),
    [
        (".layers[0].operation=sa", "layers 1, operation (sa)"),
        (".layers.length", "layers, length"),
        (".encoder.junction_1.left", "encoder, junction 1, left"),
    ],
)
def test_names_can_be_read(slot: str, words: str) -> None:
    assert readable(slot) == words
