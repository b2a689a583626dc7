"""The page of a compressed model says what its layers may have and what the delivered models have."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.compressed import compressed_facts, note_of
from tests.report.studies import SPACE, small_study
from tests.report.test_markup import read

from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page import report_html
from formwright.report.page_compression import chosen_widths, search_space


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return compressed_facts(tmp_path)


def tags_of(page: str) -> list[str]:
    return [name for name, _ in read(page).tags]


def test_other_studies_have_neither_section(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    assert search_space(facts) == chosen_widths(facts) == ""


def test_the_page_has_both_before_the_trials(facts: StudyFacts) -> None:
    page = report_html(facts)
    places = [page.index(f'<section id="{name}"') for name in ("best", "explore")]
    between = [page.index(f'id="{name}"') for name in ("space", "chosen-widths")]
    assert [places[0], *between, places[1]] == sorted([*places, *between])


def test_the_space_is_counted_and_listed(facts: StudyFacts) -> None:
    reader = read(search_space(facts))
    assert "6,561 sub-networks in all. The hidden size is 96." in reader.words
    assert "3left out, 1, 1232, 48, 64" in reader.words, "the third layer, its heads and its channels"
    assert ("figure", {"tabindex": "0"}) in reader.tags


def test_targets_are_shown_with_how_closely_they_were_met(facts: StudyFacts) -> None:
    words = read(search_space(facts)).words
    assert "Aimed at, macsOf the teacherNearest sub-networkDifference" in words
    assert "50 %" in words
    assert "+2.0 %" in words
    assert "-4.0 %" in words


def test_targets_may_be_milliseconds_or_missing(tmp_path: Path) -> None:
    for name in ("timed", "bare"):
        (tmp_path / name).mkdir()
    timed = compressed_facts(tmp_path / "timed", cost="latency_ms", targets=[{"target": 3.95, "cost": 4.0}])
    assert "Aimed at, latency" in search_space(timed)
    # of the 8.125 ms that the teacher took in turns with the models, not of the 7.9 ms that were noted first
    assert "3.95 ms49 %4.00 ms+1.3 %" in read(search_space(timed)).words
    assert "latency 3.25 ms" in chosen_widths(timed)
    assert "40 % of the teacher" in chosen_widths(timed)
    assert "Aimed at" not in search_space(compressed_facts(tmp_path / "bare", targets=[]))


def test_several_hidden_sizes_are_said(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path, space={**note_of()["space"], "hidden": [64, 96]})
    assert "13,122 sub-networks in all. All layers together have one of the hidden sizes 64, 96." in search_space(facts)
    assert chosen_widths(facts).count("hidden size 96") == 3


def test_the_teacher_stands_above_the_models(facts: StudyFacts) -> None:
    page = chosen_widths(facts)
    assert tags_of(page).count("svg") == 2 * 4
    words = read(page).words
    assert words.index("MiniLM teacher") < words.index("trial-0")
    assert "accuracy 0.8300 on validation" in words
    assert "heads of layers 1 to 4: 12, 12, 12, 12" in page


def test_models_that_are_not_drawn_are_named(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path, count=7, delivered=7)
    assert tags_of(chosen_widths(facts)).count("svg") == 2 * 7
    assert "Delivered too, and not drawn: trial-" in chosen_widths(facts)
    lost = replace(facts, trials=())
    names = ", ".join(f"trial-{number}" for number in range(7))
    assert f"Not drawn, since no trial has its design: {names}." in chosen_widths(lost)


def test_before_any_model_is_delivered(tmp_path: Path) -> None:
    page = chosen_widths(compressed_facts(tmp_path, delivered=0))
    assert "No model has been delivered yet." in page
    assert tags_of(page).count("svg") == 2
