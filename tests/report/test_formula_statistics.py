from pathlib import Path
from typing import Any

import pytest
from tests.report.invented import GOAL as FORMULA_GOAL
from tests.report.invented import PARENTS, invented_log
from tests.report.invented import SPACE as FORMULAS
from tests.report.studies import SPACE, design_of, pipeline_of, small_study

from formwright.core.records import Objective, Observation, Request, Trial
from formwright.report.formula_statistics import (
    FormulaStatistics,
    Lifespan,
    OwnWords,
    Population,
    formula_statistics,
    own_words,
    population,
)
from formwright.report.panels import UsedPart, parts_in
from formwright.space.space import Space
from formwright.study.replay import Replay
from formwright.study.store import Log
from formwright.study.study import searched

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


def test_a_loss_is_better_when_it_is_smaller() -> None:
    found = population(trials(0.5, 0.6, 0.4), (Objective("accuracy", "min"),), most=1)
    assert [(life.number, life.ends) for life in found.lives] == [(0, 2), (2, None)]


def test_trials_beyond_a_limit_come_after_all_others() -> None:
    within, beyond = (
        trials(0.5, params=10)[0],
        Trial(1, trials(0.9)[0].request, "finished", Observation({"accuracy": 0.9, "params": 30})),
    )
    found = population([within, beyond], (*GOAL, Objective("params", "min", 20)), most=1)
    assert [life.number for life in found.lives] == [0]


def test_nobody_lives_in_a_study_without_trials() -> None:
    assert population([], GOAL, most=3) == Population(3)
    assert Population(3).last == 0


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
