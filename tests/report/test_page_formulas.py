"""The page of a study that searches formulas shows them, who lived when, and which operations did well."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.invented import PARENTS, invented_facts
from tests.report.studies import SPACE as OTHER
from tests.report.studies import small_study
from tests.report.test_markup import read

from formwright.arch.layers import Block
from formwright.arch.ops import OpGraph
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.formula import formula
from formwright.report.page import report_html
from formwright.report.page_formulas import formulas_of_layers, operation_scores, population_over_time
from formwright.space.rewrite import operation_names

COUNT = 7  # too few for a map and for predictions, which take time


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    return invented_facts(tmp_path_factory.mktemp("invented"), COUNT, delivered=2)


def mixers(facts: StudyFacts) -> list[object]:
    assert facts.best_row is not None
    layers = facts.best_row.card.stacks[0].layers
    return [layer.mixer for layer in layers if isinstance(layer, Block)]


def test_studies_without_formulas_have_none_of_it(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), OTHER)
    assert facts.invention is None
    assert formulas_of_layers(facts) == population_over_time(facts) == operation_scores(facts) == ""


def test_the_page_has_all_three_between_the_best_design_and_the_trials(facts: StudyFacts) -> None:
    page = report_html(facts)
    names = ("best", "formulas", "population", "operations", "explore")
    places = [page.index(f'id="{name}"') for name in names]
    assert places == sorted(places)


def test_every_layer_of_the_best_design_has_its_formula_or_kernel_and_a_drawing(facts: StudyFacts) -> None:
    page = formulas_of_layers(facts)
    words = read(page).words
    for mixer in mixers(facts):
        expected = formula(mixer.term) if isinstance(mixer, OpGraph) else f"kernel {mixer.kernel}"  # type: ignore[attr-defined]
        assert expected in words
    assert "found-0: trial " in words
    assert [name for name, _ in read(page).tags].count("svg") == 2 * len(mixers(facts)), "two models were delivered"
    assert page.count("<details open") == 1


def test_before_anything_is_delivered_the_best_trial_is_shown(facts: StudyFacts) -> None:
    page = formulas_of_layers(replace(facts, models=()))
    assert f"Best design: trial {facts.best}, accuracy" in read(page).words
    assert page.count("<details") == 1
    assert "<details" not in formulas_of_layers(replace(facts, models=(), best=None))


def test_of_many_delivered_designs_some_are_counted(tmp_path: Path) -> None:
    many = invented_facts(tmp_path, COUNT, delivered=5)
    page = formulas_of_layers(many)
    assert page.count("<details") == 3
    assert "2 more delivered designs are in the table of trials." in page


def test_the_population_says_how_many_have_children(facts: StudyFacts) -> None:
    page = population_over_time(facts)
    assert f"among the best {PARENTS}" in page
    assert page.count("data-trial") == COUNT


def test_other_searches_are_not_said_to_go_by_it(facts: StudyFacts) -> None:
    children, by_scores = "which are those that have children", "The search draws operations by these scores."
    assert facts.invention is not None
    assert children in population_over_time(facts)
    assert by_scores in operation_scores(facts)
    lives = tuple(replace(life, parent=None) for life in facts.invention.population.lives)
    population = replace(facts.invention.population, lives=lives)
    random = replace(facts, invention=replace(facts.invention, population=population, breeds=False, guided=False))
    assert children not in population_over_time(random)
    assert "parent" not in read(population_over_time(random)).words
    assert by_scores not in operation_scores(random)
    assert "The search did not go by these scores." in operation_scores(random)


def test_operations_are_those_of_the_formulas(facts: StudyFacts) -> None:
    assert facts.invention is not None
    layers = [layer for row in facts.trials for layer in row.card.stacks[0].layers if isinstance(layer, Block)]
    written = [operation_names(layer.mixer.term) for layer in layers if isinstance(layer.mixer, OpGraph)]
    table = facts.invention.operations
    assert table.counts.sum() == sum(map(len, written))
    assert len(table.counts) == max(map(len, written))
    assert "never tried" in operation_scores(facts)
