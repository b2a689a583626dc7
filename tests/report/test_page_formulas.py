from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.studies import (
    FORMULA_GOAL,
    FORMULAS,
    PARENTS,
    SPACE,
    design_of,
    invented_facts,
    invented_log,
    pipeline_of,
    small_study,
)
from tests.report.test_markup import read

from formwright.arch.formula import formula
from formwright.arch.layers import Block
from formwright.arch.ops import OpGraph
from formwright.core.records import Objective, Observation, Request, Trial
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.formula_statistics import (
    FormulaStatistics,
    Lifespan,
    OwnWords,
    Population,
    formula_statistics,
    own_words,
    population,
)
from formwright.report.page import report_html
from formwright.report.page_formulas import (
    draw_operations,
    draw_population,
    formulas_section,
    operation_scores,
    population_section,
)
from formwright.report.panels import UsedPart, parts_in
from formwright.search.op_nas import OperationTable
from formwright.space.space import Space
from formwright.space.term_edits import operation_names
from formwright.study.replay import Replay
from formwright.study.store import Log
from formwright.study.study import searched

TABLE = OperationTable(
    ("neg", "softmax", "matmul"), np.array([[0.5, -1.0, 0.0], [2.0, 0.25, 0.1]]), np.array([[3, 1, 0], [0, 2_000, 1]])
)
FOUND = Population(
    2,
    (Lifespan(0, 0.5, 3), Lifespan(1, 0.6, 5, 0), Lifespan(3, 0.7, None, 0), Lifespan(5, 0.8, None, 3)),
    ((2, 0.1), (4, 0.55)),
)
COUNT = 7  # too few for a map and for predictions, which take time


def drawn(table: OperationTable = TABLE) -> ElementTree.Element:
    return ElementTree.fromstring(draw_operations(table))


def test_cells_tell_score_and_count_in_colours_of_sign_and_size() -> None:
    titles = [title.text for title in drawn().iter("title")]
    assert titles == [
        "Place 1, neg: +0.50 in 3 formulas",
        "Place 1, softmax: -1.00 in 1 formula",
        "Place 1, matmul: never tried",
        "Place 2, neg: never tried",
        "Place 2, softmax: +0.25 in 2,000 formulas",
        "Place 2, matmul: +0.10 in 1 formula",
    ]
    words = [one.text for one in drawn().iter("text")]
    assert words[:6] == ["place", "neg", "softmax", "matmul", "1", "2"]
    assert words[6:10] == ["+0.50", "3", "-1.00", "1"]
    colours = [cell.attrib["style"] for cell in drawn().iter("rect") if cell.get("class") == "cell"]
    assert "var(--better) 31%" in colours[0]
    assert "var(--worse) 62%" in colours[1], "the largest of those that were tried"
    assert "var(--better) 15.5%" in colours[2]
    assert sum(cell.get("class") == "untried" for cell in drawn().iter("rect")) == 2
    flat = OperationTable(("neg",), np.zeros((1, 1)), np.ones((1, 1), dtype=np.int64))
    assert " 0%" in next(cell.attrib["style"] for cell in drawn(flat).iter("rect"))


def drawn_population(found: Population = FOUND, goal: str = "accuracy") -> ElementTree.Element:
    return ElementTree.fromstring(draw_population(found, goal, larger_is_better=True))


def lives(drawing: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in drawing.iter("g") if "life" in group.attrib["class"].split()]


def test_every_life_is_a_line_at_its_score_as_long_as_it_was() -> None:
    found = {int(group.attrib["data-trial"]): group for group in lives(drawn_population())}
    starts = {number: float(group.find("circle").attrib["cx"]) for number, group in found.items()}  # type: ignore[union-attr]
    ends = {number: float(group.find("path").attrib["d"].split("H")[1]) for number, group in found.items()}  # type: ignore[union-attr]
    heights = [float(group.find("circle").attrib["cy"]) for group in found.values()]  # type: ignore[union-attr]
    assert ends[0] == starts[3]
    assert ends[1] == ends[3] == starts[5], "the last trial is the end of the figure"
    assert heights == sorted(heights, reverse=True), "the better the higher"
    assert [group.attrib["class"] for group in found.values()] == ["life", "life", "life alive", "life alive"]


def test_lives_hang_from_their_parents_with_titles_and_others_are_dots() -> None:
    titles = [title.text for title in drawn_population().iter("title")]
    assert "Trial 0: accuracy 0.5000, trial 3 took its place" in titles
    assert "Trial 5: accuracy 0.8000, among the best to the end" in titles
    assert "Trial 4: accuracy 0.5500" in titles
    drawing = drawn_population()
    assert len([one for one in drawing.iter("path") if one.get("class") == "birth"]) == 3
    dots = [one for one in drawing.iter("circle") if one.get("class") == "other"]
    height = float(drawing.attrib["viewBox"].split()[3])
    assert [one.attrib["data-trial"] for one in dots] == ["2", "4"]
    assert all(0 < float(dot.attrib["cy"]) < height for dot in dots), "the worst stands on the edge"
    assert '<b>"&' in drawn_population(goal='<b>"&').attrib["aria-label"]


@pytest.mark.parametrize("life", [Lifespan(0, 0.5), Lifespan(0, float(10**9))])
def test_one_trial_is_enough(life: Lifespan) -> None:
    assert len(lives(drawn_population(Population(3, (life,))))) == 1


def test_very_many_dots_are_thinned() -> None:
    many = tuple((number, 0.1) for number in range(5_000))
    dots = [
        one
        for one in drawn_population(Population(1, (Lifespan(5_000, 0.5),), many)).iter("circle")
        if one.get("class") == "other"
    ]
    assert len(dots) == 1_500


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    return invented_facts(tmp_path_factory.mktemp("invented"), COUNT, delivered=2)


def mixers(facts: StudyFacts) -> list[object]:
    assert facts.best_row is not None
    layers = facts.best_row.card.stacks[0].layers
    return [layer.mixer for layer in layers if isinstance(layer, Block)]


def test_studies_without_formulas_have_none_of_it(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    assert facts.formulas is None
    assert formulas_section(facts) == population_section(facts) == operation_scores(facts) == ""


def test_the_page_has_all_three_between_the_best_design_and_the_trials(facts: StudyFacts) -> None:
    page = report_html([facts])
    names = ("best", "formulas", "population", "operations", "trials")
    places = [page.index(f'id="{name}"') for name in names]
    assert places == sorted(places)


def test_every_layer_of_the_best_designs_has_its_formula_or_kernel_and_a_drawing(facts: StudyFacts) -> None:
    page = formulas_section(facts)
    words = read(page).words
    for mixer in mixers(facts):
        expected = formula(mixer.term) if isinstance(mixer, OpGraph) else f"kernel {mixer.kernel}"  # type: ignore[attr-defined]
        assert expected in words
    assert "found-0: trial " in words
    assert [name for name, _ in read(page).tags].count("svg") == 2 * len(mixers(facts)), "two models were delivered"
    assert page.count("<details open") == 1
    page = formulas_section(replace(facts, models=()))
    assert f"Best design: trial {facts.best}, accuracy" in read(page).words
    assert page.count("<details") == 1
    assert "<details" not in formulas_section(replace(facts, models=(), best=None))


def test_of_many_delivered_designs_some_are_counted(tmp_path: Path) -> None:
    many = invented_facts(tmp_path, COUNT, delivered=5)
    page = formulas_section(many)
    assert page.count("<details") == 3
    assert "2 more delivered designs are in the table of trials." in page


def test_the_population_says_how_many_have_children_where_the_search_goes_by_it(facts: StudyFacts) -> None:
    page = population_section(facts)
    assert f"among the best {PARENTS}" in page
    assert page.count("data-trial") == COUNT
    children, by_scores = "the parents of new designs", "The search draws operations by these scores."
    assert facts.formulas is not None
    assert children in population_section(facts)
    assert by_scores in operation_scores(facts)
    lives = tuple(replace(life, parent=None) for life in facts.formulas.population.lives)
    population = replace(facts.formulas.population, lives=lives)
    random = replace(facts, formulas=replace(facts.formulas, population=population, breeds=False, guided=False))
    assert children not in population_section(random)
    assert "parent" not in read(population_section(random)).words
    assert by_scores not in operation_scores(random)
    assert "The search did not use these scores." in operation_scores(random)


def test_operations_are_those_of_the_formulas(facts: StudyFacts) -> None:
    assert facts.formulas is not None
    layers = [layer for row in facts.trials for layer in row.card.stacks[0].layers if isinstance(layer, Block)]
    written = [operation_names(layer.mixer.term) for layer in layers if isinstance(layer.mixer, OpGraph)]
    table = facts.formulas.operations
    assert table.counts.sum() == sum(map(len, written))
    assert len(table.counts) == max(map(len, written))
    assert "never tried" in operation_scores(facts)


GOAL = (Objective("accuracy", "max"),)


def trials(*scores: float, **more: float) -> list[Trial]:
    requests = [Request(SPACE.card(design_of(0)), parent=None if number == 0 else 0) for number in range(len(scores))]
    return [
        Trial(number, request, "finished", Observation({"accuracy": score, **more}))
        for number, (request, score) in enumerate(zip(requests, scores, strict=True))
    ]


def test_a_design_lives_until_better_ones_have_taken_its_place() -> None:
    found = population(trials(0.5, 0.6, 0.4, 0.7, 0.55, 0.8), GOAL, most=2)
    assert found.lives == (
        Lifespan(0, 0.5, 3),
        Lifespan(1, 0.6, 5, 0),
        Lifespan(3, 0.7, None, 0),
        Lifespan(5, 0.8, None, 0),
    )
    assert found.others == ((2, 0.4), (4, 0.55))
    assert found.last == 5
    found = population(trials(0.5, 0.6, 0.4), (Objective("accuracy", "min"),), most=1)
    assert [(life.number, life.ends) for life in found.lives] == [(0, 2), (2, None)]
    assert population([], GOAL, most=3) == Population(3)
    assert Population(3).last == 0


def test_trials_beyond_a_limit_come_after_all_others() -> None:
    within, beyond = (
        trials(0.5, params=10)[0],
        Trial(1, trials(0.9)[0].request, "finished", Observation({"accuracy": 0.9, "params": 30})),
    )
    found = population([within, beyond], (*GOAL, Objective("params", "min", 20)), most=1)
    assert [life.number for life in found.lives] == [0]


def used(config: dict[str, Any]) -> list[UsedPart]:
    return parts_in(pipeline_of(**config))


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ({"searcher": {"name": "op-nas", "parents": 4}}, OwnWords(4, True, True)),
        ({"searcher": {"name": "op-nas", "guided": False}, "stop": {"trials": 40}}, OwnWords(2, True, False)),
        ({"searcher": {"name": "op-nas", "parents": None}, "stop": {}}, OwnWords(5, True, True)),
        ({"searcher": {"name": "op-nas", "alpha": 0.5}, "stop": {}}, OwnWords(5, True, True, 0.5)),
        ({"searcher": {"name": "regularized-evolution", "parents": 2, "alpha": 3}, "stop": {}}, OwnWords(5)),
        ({"searcher": {"name": "not-installed"}, "stop": {}}, OwnWords(5)),
        ({"searcher": "random", "stop": {}}, OwnWords(5)),
    ],
)
def test_what_a_searcher_says_of_itself_comes_from_its_class_and_options(config: dict[str, Any], own: OwnWords) -> None:
    assert own_words({"stop": {"trials": 40}, **config}, used(config)) == own


def found_in(folder: Path, space: Space, log: Log, **searcher: Any) -> FormulaStatistics | None:
    replay = Replay(space)
    replay.feed(log.read())
    config = {**searched(log.config), **({"searcher": searcher} if searcher else {})}
    return formula_statistics(space, replay.history.finished, FORMULA_GOAL, config, used(dict(config)))


def test_a_study_of_formulas_has_lives_and_scores_and_others_have_none(tmp_path: Path) -> None:
    for name in ("formulas", "others"):
        (tmp_path / name).mkdir()
    log = invented_log(tmp_path / "formulas", 7)
    found, wide = found_in(tmp_path, FORMULAS, log), found_in(tmp_path, FORMULAS, log, name="op-nas", alpha=1.0)
    assert found is not None
    assert wide is not None
    assert (found.population.most, found.breeds, found.guided) == (PARENTS, True, True)
    assert len(found.population.lives) + len(found.population.others) == 7
    assert found.operations.counts.any()
    assert (wide.operations.scores >= found.operations.scores).all()
    assert (wide.operations.scores > found.operations.scores).any(), "a larger alpha gives rare operations more"
    back = found_in(tmp_path, FORMULAS, log, name="random")
    assert back is not None
    assert (back.breeds, back.guided) == (False, False)
    assert found_in(tmp_path, SPACE, small_study(tmp_path / "others")) is None
