from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import in_one_process
from tests.pipeline.shared_runs import Lines

from formwright.api import run
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES
from formwright.recipes.linas import linas
from formwright.search.linas import Linas
from formwright.search.predictors.ensembles import CrossValidated

DIGITS = TaskChoice("digits", rows=200)


def test_rounds_and_predictors_are_options_of_its_searcher() -> None:
    shared, search, deliver = linas(DIGITS, batch=7).stages
    assert RECIPES.get("linas") is linas
    assert search.searcher.KIND is Linas
    assert (search.searcher.batch, search.searcher.predictor) == (7, CrossValidated())
    assert search.evaluator.weights is shared
    assert not search.evaluator.races, "predictors learn from the scores of all rows"
    assert (deliver.weights, deliver.steps) == ("shared", 0)


@pytest.mark.parametrize(
    ("objectives", "expected"),
    [((), ("accuracy:max", "macs:min")), (("accuracy:max", "params:min"), ("accuracy:max", "params:min"))],
)
def test_a_front_has_two_goals_unless_others_are_given(
    objectives: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    made = linas(DIGITS, objectives=objectives)
    (search,) = made.of_kind(Search)
    assert search.resolved(PipelineRun(made, tmp_path).stage(search)).objectives == expected


def test_costs_to_minimise_are_added_to_the_own_goal_alone(tmp_path: Path) -> None:
    made = linas(DIGITS)
    (search,) = made.of_kind(Search)
    stage = PipelineRun(made, tmp_path).stage(search)
    found = replace(search, minimise=("accuracy", "params")).resolved(stage)
    assert (found.objectives, found.minimise) == (("accuracy:max", "params:min"), ())
    told = Lines()
    stage = PipelineRun(made, tmp_path, display=told).stage(search)
    found = replace(search, objectives=("accuracy:max", "params:min")).resolved(stage)
    assert (found.objectives, found.minimise) == (("accuracy:max", "params:min"), ())
    assert ["macs" in line for line in told.lines] == [True]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("task", "space"),
    [("digits", "autoformer-nano"), pytest.param("translation", "hat-nano", marks=pytest.mark.long)],
)
def test_it_delivers_a_front_of_any_super_network(
    task: str, space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_one_process(monkeypatch)
    goal = "accuracy:max" if task == "digits" else "perplexity:min"
    made = linas(TaskChoice(task, rows=60), space=space, objectives=(goal, "macs:min"), steps=5, trials=6, batch=2)
    options = {("super_network", "training", "batch"): 8, ("search", "searcher", "initial"): 3}
    result = run(made.with_options(list(options.items())), tmp_path / "run")
    assert 1 <= len(result.models) <= 3
    points = sorted((model.costs["macs"], model.name) for model in result.models)
    assert len({cost for cost, _ in points}) == len(points)
