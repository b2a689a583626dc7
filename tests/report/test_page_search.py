from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, many_facts, searched_study, small_study
from tests.report.test_markup import HOSTILE, read

from formwright.report.choice_importance import Bar, ChoiceImportance
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page_search import cost_ledger, failures, importance_section, map_section, predictions_section
from formwright.report.predictions import Predictions
from formwright.report.space_map import SpaceMap


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return many_facts(tmp_path, 150)


def ids(page: str) -> list[str | None]:
    return [attributes["id"] for _, attributes in read(page).tags if "id" in attributes]


def pressed(page: str) -> list[str | None]:
    return [it["data-path"] for _, it in read(page).tags if it.get("aria-pressed") == "true"]


def test_the_map_says_what_it_shows_and_a_short_path_is_whole(facts: StudyFacts) -> None:
    page = map_section(facts)
    assert ids(page) == ["map-part", "map-title", "map"]
    words = read(page).words
    assert "9,312 designs of the space vary most, 50% of the variance" in words
    assert "30 evenly spaced of 150 trials" in words
    pool = map_section(replace(facts, trials=facts.trials[:30], space_map=replace(facts.space_map, whole=False)))
    assert "too large to list" in read(pool).words
    assert "evenly spaced" not in read(pool).words
    assert pressed(map_section(facts)) == ["all"]
    spots = facts.space_map.spots * 5
    assert pressed(map_section(replace(facts, space_map=replace(facts.space_map, spots=spots)))) == ["best"]


@pytest.mark.parametrize(
    ("spearman", "words"),
    [
        (0.8, "0.80: it mostly ranked better designs"),
        (0.5, "0.50: it often ranked better designs"),
        (0.35, "0.35: it sometimes ranked better designs"),
        (0.2, "0.20, which may be chance"),
        (-0.2, "-0.20, which may be chance"),
        (-0.5, "-0.50: it ranked worse designs above better ones"),
    ],
)
def test_the_rank_correlation_in_words(facts: StudyFacts, spearman: float, words: str) -> None:
    shown = replace(facts, predictions=replace(facts.predictions, spearman=spearman))
    assert f"rank correlation with the measured accuracy is {words}" in read(predictions_section(shown)).words


def test_predictions_say_how_often_they_hold(facts: StudyFacts) -> None:
    page = predictions_section(facts)
    assert ids(page) == ["predictions-part", "predictions-title", "predictions"]
    held = sum(0.65 <= guess.outcome <= 0.75 for guess in facts.predictions.guesses)
    assert f"{held} of 30 outcomes lie within the 90 % interval." in read(page).words
    assert "evenly spaced" not in read(page).words
    few = replace(facts, predictions=replace(facts.predictions, learnt=200, trials=10_000))
    assert "Of 10,000 trials, 200 evenly spaced ones were used." in read(predictions_section(few)).words


@pytest.mark.parametrize("reason", HOSTILE)
def test_what_is_missing_has_no_room_and_a_reason(facts: StudyFacts, reason: str) -> None:
    hidden = replace(facts, space_map=SpaceMap(hidden=reason), predictions=Predictions(hidden=reason))
    assert ids(map_section(hidden)) == ["map-part"]
    assert ids(predictions_section(hidden)) == ["predictions-part"]
    assert {name for name, _ in read(map_section(hidden)).tags} == {"div", "h3", "p"}
    assert reason in read(predictions_section(hidden)).words


@pytest.mark.slow
def test_a_study_of_some_trials_has_both(tmp_path: Path) -> None:
    facts = study_facts(searched_study(tmp_path), SPACE)
    assert [spot.number for spot in facts.space_map.spots] == list(range(25))
    assert [guess.number for guess in facts.predictions.guesses] == list(range(12, 24))
    assert facts.best in [spot.number for spot in facts.space_map.spots]


@pytest.fixture
def small_facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_a_small_study_has_neither_map_nor_predictions_nor_importance(small_facts: StudyFacts) -> None:
    assert "finished trials; there are 4" in read(importance_section(small_facts)).words
    assert "finished trials; there are 4" in read(map_section(small_facts)).words
    assert "this study has 2 goals" in read(predictions_section(small_facts)).words


def test_importance_is_shown_with_its_worth(small_facts: StudyFacts) -> None:
    bars = tuple(Bar(f"choice {number}", 0.5 / (number + 1)) for number in range(20))
    page = importance_section(replace(small_facts, importance=ChoiceImportance(0.63, 100, bars, bars[:1])))
    words = read(page).words
    for expected in ("63% of the variance of accuracy", "R² = 0.6300", "choice 0", "and 5 smaller ones"):
        assert expected in words
    assert "choice 15" not in words
    assert "width:100.0%" in page
    assert "width:50.0%" in page


def test_failures_are_grouped_by_reason_and_cut(small_facts: StudyFacts) -> None:
    row = small_facts.trials[4]
    rows = [replace(row, number=number, reason="rare" if number == 99 else "frequent") for number in range(80, 100)]
    reader = read(failures(replace(small_facts, trials=tuple(rows))))
    assert reader.words.index("19 trialsfrequent") < reader.words.index("1 trialrare")
    assert "and 7 more" in reader.words
    assert [attributes["data-trial"] for name, attributes in reader.tags if name == "button"][-1] == "99"
    assert "No trial failed." in read(failures(replace(small_facts, trials=small_facts.trials[:4]))).words
    rows = tuple(replace(small_facts.trials[4], number=number, reason=f"reason {number}") for number in range(60))
    assert "and 10 more reasons" in read(failures(replace(small_facts, trials=rows))).words


def test_the_ledger_adds_up(small_facts: StudyFacts) -> None:
    words = read(cost_ledger(small_facts)).words
    for expected in ("Trials finished4", "Trials failed1", "running1", "10 s", "Training steps1,200", "4.00 G"):
        assert expected in words
