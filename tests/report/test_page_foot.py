"""The end of the page: importance, failures, costs, configuration."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, small_study
from tests.report.test_markup import read

from formwright.report.facts import StudyFacts, study_facts
from formwright.report.importance import Bar, Importance
from formwright.report.page_foot import choices_that_matter, configuration, cost_ledger, failures, footer


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_importance_is_hidden_with_a_reason(facts: StudyFacts) -> None:
    assert "4 finished trials are too few to tell" in read(choices_that_matter(facts)).words


def test_importance_is_shown_with_its_worth(facts: StudyFacts) -> None:
    bars = tuple(Bar(f"choice {number}", 0.5 / (number + 1)) for number in range(20))
    page = choices_that_matter(replace(facts, importance=Importance(0.63, 100, bars, bars[:1])))
    words = read(page).words
    for expected in ("63% of the variance of accuracy", "R² = 0.6300", "choice 0", "and 5 smaller ones"):
        assert expected in words
    assert "choice 15" not in words
    assert "width:100.0%" in page
    assert "width:50.0%" in page


def test_failures_are_grouped_by_reason(facts: StudyFacts) -> None:
    row = facts.trials[4]
    rows = [replace(row, number=number, reason="rare" if number == 99 else "frequent") for number in range(80, 100)]
    reader = read(failures(replace(facts, trials=tuple(rows))))
    assert reader.words.index("19 trialsfrequent") < reader.words.index("1 trialrare")
    assert "and 7 more" in reader.words
    assert [attributes["data-trial"] for name, attributes in reader.tags if name == "button"][-1] == "99"


def test_no_failures(facts: StudyFacts) -> None:
    assert "No trial failed." in read(failures(replace(facts, trials=facts.trials[:4]))).words


def test_very_many_reasons_are_cut(facts: StudyFacts) -> None:
    rows = tuple(replace(facts.trials[4], number=number, reason=f"reason {number}") for number in range(60))
    assert "and 10 more reasons" in read(failures(replace(facts, trials=rows))).words


def test_the_ledger_adds_up(facts: StudyFacts) -> None:
    words = read(cost_ledger(facts)).words
    for expected in ("Trials finished4", "Trials failed1", "under way1", "10 s", "Training steps1,200", "4.00 G"):
        assert expected in words


def test_the_configuration_is_whole(facts: StudyFacts) -> None:
    words = read(configuration(facts)).words
    assert json.loads(words[words.index("{") :]) == facts.config


def test_the_footer_says_when(facts: StudyFacts) -> None:
    assert "as of 1970-01-02 00:00:00 UTC" in footer(replace(facts, as_of=86_400.0))
    assert "was running" in footer(facts)
    assert "was running" not in footer(replace(facts, over="40 trials"))
