"""Predictions know nothing of what they predict, and are silent where there is nothing to predict."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from formwright.core.errors import NotCountable
from formwright.core.records import Budget, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.cost import params
from formwright.report import predictions as module
from formwright.report.predictions import FEWEST, FIRST, MOST, Guess, Predictions, predictions
from formwright.search.candidates import points
from formwright.search.listing import listing
from formwright.space import Space
from formwright.testing.toy_problem import small

GOAL = [Objective("accuracy", "max")]
Score = Callable[[int, int], float]  # of the number of a trial and the parameters of its design


def by_size(number: int, size: int) -> float:
    return 0.5 + size / 1e5


def trials(count: int, score: Score = by_size, steps: int | None = None) -> list[Trial]:
    rng, space = derive(0, "trials"), small()
    designs = [space.sample(rng) for _ in range(count)]
    cards = [space.card(design) for design in designs]
    return [
        Trial(number, Request(card, Budget(steps), None, design), "finished", Observation({"accuracy": scored}))
        for number, (design, card) in enumerate(zip(designs, cards, strict=True))
        for scored in [score(number, params(card))]
    ]


def test_trials_after_the_first_dozen_are_predicted_from_those_before_them() -> None:
    known = trials(FIRST + FEWEST)
    found = predictions(small(), known, GOAL)
    assert [guess.number for guess in found.guesses] == list(range(FIRST, FIRST + FEWEST))
    assert [guess.outcome for guess in found.guesses] == [
        trial.observation.metrics["accuracy"] for trial in known[FIRST:] if trial.observation is not None
    ]
    assert all(guess.low < guess.mean < guess.high for guess in found.guesses)
    assert found == predictions(small(), known, GOAL)
    one = predictions(small(), trials(FIRST + FEWEST), GOAL).guesses
    other = predictions(small(), trials(FIRST + FEWEST, lambda n, size: 100 - 10 * by_size(n, size)), GOAL).guesses
    assert all(0.4 < guess.mean < 1.0 for guess in one)
    assert all(90 < guess.mean < 96 for guess in other)
    before = predictions(small(), known, GOAL).guesses
    changed = [replace(trial, observation=Observation({"accuracy": 0.1})) for trial in known[FIRST + 3 :]]
    after = predictions(small(), [*known[: FIRST + 3], *changed], GOAL).guesses
    assert after[:3] == before[:3]
    assert (after[3].mean, after[3].low) == (before[3].mean, before[3].low)
    assert after[3].outcome == 0.1


@pytest.mark.slow
def test_what_can_be_learnt_is_predicted() -> None:
    known = trials(80)
    places = points(listing(small()).points_of, [trial.request for trial in known])[:, 0]
    scored = [replace(trial, observation=Observation({"accuracy": x})) for trial, x in zip(known, places, strict=True)]
    found = predictions(small(), scored, GOAL)
    assert len(found.guesses) == MOST
    assert (found.guesses[0].number, found.guesses[-1].number) == (FIRST, 79)
    assert found.spearman > 0.8
    assert sum(guess.holds for guess in found.guesses) > 0.6 * MOST


@pytest.mark.slow
def test_what_is_noise_is_not_predicted() -> None:
    rng = derive(0, "noise")
    assert abs(predictions(small(), trials(60, lambda _, __: rng.normal()), GOAL).spearman) < 0.5


def test_very_many_trials_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LEARNT", 24)
    found = predictions(small(), trials(200), GOAL)
    assert (len(found.guesses), found.learnt, found.trials) == (24 - FIRST, 24, 200)
    assert found.guesses[-1].number == 199


def test_one_goal_and_the_largest_budget_count() -> None:
    short = [replace(trial, number=trial.number + 100) for trial in trials(50, steps=10)]
    found = predictions(small(), [*trials(FIRST), *short], GOAL)
    assert all(str(number) in found.hidden for number in (FIRST, FIRST + FEWEST))
    assert "has 2 goals" in predictions(small(), trials(40), [*GOAL, Objective("params", "min")]).hidden
    limited = predictions(small(), trials(FIRST), [*GOAL, Objective("params", "min", 1e5)])
    assert f"there are {FIRST}" in limited.hidden


@pytest.mark.parametrize("differs", [60, 20])
def test_equal_scores_leave_nothing_to_predict(differs: int) -> None:
    found = predictions(small(), trials(26, lambda number, _: 0.5 + 0.1 * (number >= differs)), GOAL)
    assert found == Predictions(hidden="Nearly all finished trials have the same score: there is nothing to predict.")


def test_predicting_begins_where_scores_differ() -> None:
    found = predictions(small(), trials(24, lambda number, _: 0.5 + 0.1 * (number >= 14)), GOAL)
    assert [guess.number for guess in found.guesses] == list(range(15, 24))
    assert np.isfinite([guess.mean for guess in found.guesses]).all()


def test_a_space_that_cannot_be_listed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(space: Space) -> None:
        raise NotCountable("nobody knows its designs")

    monkeypatch.setattr(module, "listing", refuse)
    assert predictions(small(), trials(30), GOAL).hidden.endswith("cannot be placed: nobody knows its designs")


@pytest.mark.parametrize(("outcome", "holds"), [(0.4, True), (0.6, True), (0.39, False), (0.61, False)])
def test_the_interval_holds_its_ends(outcome: float, holds: bool) -> None:
    assert Guess(0, 0.5, 0.4, 0.6, outcome).holds == holds
