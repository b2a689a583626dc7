"""What a run would take is estimated before it begins, and nothing is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from tests.pipeline.cases import quick

from formwright.core.options import Stage
from formwright.pipeline.forecast import StageForecast, forecast_run
from formwright.pipeline.model_times import ModelTimes
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import LOOKS, WRITING
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import prepare
from formwright.pipeline.search import START, Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_model import train_pipeline
from formwright.recipes import RECIPES
from formwright.study.stop import Stop

TASK = TaskChoice("mini-glue/sst2", rows=64)


def forecasts(pipeline: Pipeline, out: Path) -> dict[str, StageForecast]:
    run = PipelineRun(pipeline, out)
    prepare(run)
    found = forecast_run(run)
    assert not out.exists()
    return {one.stage: one for one in found}


def test_a_search_takes_time_and_disk_for_every_trial_and_its_designs_have_costs(tmp_path: Path) -> None:
    few, many = (
        forecasts(
            RECIPES.get("plain")(TASK, trials=trials).with_options(
                [(["search", "training", "steps"], 2), (["deliver", "steps"], 2)]
            ),
            tmp_path / "out",
        )
        for trials in (2, 2000)
    )
    assert few["search"].expected.disk
    assert few["deliver"].expected.disk
    assert many["search"].expected.disk == 1000 * few["search"].expected.disk
    assert 0 < (few["search"].expected.seconds or 0) < (many["search"].expected.seconds or 0)
    least, most = many["search"].expected.costs["params"]
    assert 0 < least < most
    assert many["deliver"].reads == ("search",)


def test_workers_share_the_trials_and_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(Search, "typical_times", lambda *_: ModelTimes(1.0, 1.0, 10.0, 1.0, 1.0))
    made = quick(evaluator="full", objectives=("accuracy:max",), stop=Stop(40), keep=3)

    def seconds(workers: int) -> list[float]:
        run = PipelineRun(made, tmp_path, RunOptions(workers=workers))
        found = [stage.forecast(run.stage(stage)) for stage in made]
        return [one.seconds for one in found]

    search, deliver = zip(seconds(1), seconds(4), seconds(64), strict=True)
    trial = 5 * 10.0 + 1.0
    assert [START + 40 * trial / many for many in (1, 4, 4)] == pytest.approx(search)
    each = WRITING + LOOKS * 1.0 + 5 * 10.0
    assert [START + turns * each for turns in (4, 1, 1)] == pytest.approx(deliver)  # with the baseline


def test_planned_stages_and_trainings_say_how_long_they_take(tmp_path: Path) -> None:
    shared = forecasts(RECIPES.get("spos")(TaskChoice("digits"), steps=2, trials=2), tmp_path / "out")
    trained = forecasts(train_pipeline("bert-tiny", TASK, steps=2), tmp_path / "out")
    for one in (*shared.values(), *trained.values()):
        assert (one.expected.seconds or 0) > 0, one.stage


def test_a_stage_of_another_package_that_estimates_nothing_is_listed(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Silent(Stage):
        """Do nothing."""

        NAME: ClassVar[str] = "silent"

    found = forecasts(Pipeline(Silent()), tmp_path / "out")
    assert found["silent"].what == "Do nothing."
    assert (found["silent"].expected.seconds, found["silent"].expected.disk) == (None, None)
