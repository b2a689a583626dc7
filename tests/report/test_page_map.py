"""The figures of the embedding say in words what they show, or why they are not there."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, many_facts, searched_study, small_study
from tests.report.test_markup import HOSTILE, read

from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page_map import map_of_space, predictions_and_outcomes
from formwright.report.predictions import Predictions
from formwright.report.space_map import SpaceMap


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return many_facts(tmp_path, 150)


def ids(page: str) -> list[str | None]:
    return [attributes["id"] for _, attributes in read(page).tags if "id" in attributes]


def pressed(page: str) -> list[str | None]:
    return [it["data-path"] for _, it in read(page).tags if it.get("aria-pressed") == "true"]


def test_the_map_says_what_it_shows(facts: StudyFacts) -> None:
    page = map_of_space(facts)
    assert ids(page) == ["map-part", "map-title", "map"]
    words = read(page).words
    assert "9,312 designs of the space vary most, 50% of the variance" in words
    assert "An even choice of 30 of 150 trials is shown." in words
    pool = map_of_space(replace(facts, trials=facts.trials[:30], space_map=replace(facts.space_map, whole=False)))
    assert "too large to list" in read(pool).words
    assert "An even choice" not in read(pool).words


def test_a_short_path_is_shown_whole(facts: StudyFacts) -> None:
    assert pressed(map_of_space(facts)) == ["all"]
    spots = facts.space_map.spots * 5
    assert pressed(map_of_space(replace(facts, space_map=replace(facts.space_map, spots=spots)))) == ["best"]


@pytest.mark.parametrize(
    ("spearman", "words"),
    [
        (0.8, "0.80: it mostly told better designs"),
        (0.5, "0.50: it often told better designs"),
        (0.35, "0.35: it sometimes told better designs"),
        (0.2, "0.20, which may be chance"),
        (-0.2, "-0.20, which may be chance"),
        (-0.5, "-0.50: it took worse designs for better ones"),
    ],
)
def test_the_rank_correlation_in_words(facts: StudyFacts, spearman: float, words: str) -> None:
    shown = replace(facts, predictions=replace(facts.predictions, spearman=spearman))
    assert f"rank correlation with the accuracy that came out is {words}" in read(predictions_and_outcomes(shown)).words


def test_predictions_say_how_often_they_hold(facts: StudyFacts) -> None:
    page = predictions_and_outcomes(facts)
    assert ids(page) == ["predictions-part", "predictions-title", "predictions"]
    held = sum(0.65 <= guess.outcome <= 0.75 for guess in facts.predictions.guesses)
    assert f"{held} of 30 outcomes lie within the 90 % interval." in read(page).words
    assert "evenly spaced" not in read(page).words
    few = replace(facts, predictions=replace(facts.predictions, learnt=200, trials=10_000))
    assert "Of 10,000 trials, 200 evenly spaced ones were used." in read(predictions_and_outcomes(few)).words


@pytest.mark.parametrize("reason", HOSTILE)
def test_what_is_missing_has_no_room_and_a_reason(facts: StudyFacts, reason: str) -> None:
    hidden = replace(facts, space_map=SpaceMap(hidden=reason), predictions=Predictions(hidden=reason))
    assert ids(map_of_space(hidden)) == ["map-part"]
    assert ids(predictions_and_outcomes(hidden)) == ["predictions-part"]
    assert {name for name, _ in read(map_of_space(hidden)).tags} == {"div", "h3", "p"}
    assert reason in read(predictions_and_outcomes(hidden)).words


def test_a_small_study_has_neither(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    assert "4 finished trials are too few" in read(map_of_space(facts)).words
    assert "this study has 2 goals" in read(predictions_and_outcomes(facts)).words


@pytest.mark.slow
def test_a_study_of_some_trials_has_both(tmp_path: Path) -> None:
    facts = study_facts(searched_study(tmp_path), SPACE)
    assert [spot.number for spot in facts.space_map.spots] == list(range(25))
    assert [guess.number for guess in facts.predictions.guesses] == list(range(12, 24))
    assert facts.best in [spot.number for spot in facts.space_map.spots]
