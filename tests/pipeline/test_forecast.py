"""How fast this machine is, found without changing what is to be trained, and what a run would take."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.pipeline.cases import quick
from tests.pipeline.compressions import QUICK, begun, compression

from formwright.core.options import Stage
from formwright.pipeline import model_times as module
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.forecast import StageForecast, forecast_run
from formwright.pipeline.model_times import ModelTimes
from formwright.pipeline.pacing import budget_of, measured_speeds
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import LOOKS, SLOWED, WRITING
from formwright.pipeline.run import PipelineRun, RunOptions, StageRun
from formwright.pipeline.runner import prepare
from formwright.pipeline.search import START, Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_model import train_pipeline
from formwright.recipes import RECIPES
from formwright.study.stop import Stop
from formwright.train.loop import scores_of

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


Teacher = tuple[FineTune, StageRun]


@pytest.fixture
def teacher(tmp_path: Path) -> Callable[..., Teacher]:
    def make(**options: Any) -> Teacher:
        run = begun(compression(tmp_path, **options), tmp_path / "out")
        stage = run.pipeline.of_kind(FineTune)[0]
        return stage, run.stage(stage)

    return make


def times(teacher: Teacher) -> ModelTimes:
    teacher[1].run.timings.clear()
    return teacher[0].times(teacher[1])


def test_all_stages_are_timed_once_and_nothing_is_changed(tmp_path: Path) -> None:
    run = begun(compression(tmp_path), tmp_path / "out")
    stage = run.pipeline.of_kind(FineTune)[0]
    here = run.stage(stage)
    before, threads = stage.pretrained(here).digests(), torch.get_num_threads()
    found = measured_speeds(run)
    assert list(found) == ["teacher", "scores", "super-network", "search", "deliver"]
    assert min(one for some in found.values() for one in some.values()) > 0
    assert len(run.timings) == 1  # all are of one model
    known = stage.times(here)
    assert found["teacher"]["step"] == found["scores"]["batch"] == known.step
    assert found["search"]["validation"] < found["teacher"]["judging"]  # of a sub-network
    assert found["super-network"]["answers"] == pytest.approx(5 * found["super-network"]["answer"])  # 5 batches
    assert found["super-network"]["step"] > known.step  # several sub-networks
    assert stage.pretrained(here).digests() == before
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("scored", [False, True])
def test_smaller_sub_networks_take_less(scored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once each time it is read."""
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    speeds = {}
    for share in (75, 30):
        run = begun(compression(tmp_path, scored=scored, targets=(f"macs={share}%",)), tmp_path / f"{share}")
        speeds[share] = measured_speeds(run)
    assert speeds[75]["teacher"]["step"] == speeds[30]["teacher"]["step"] == 1.0
    for stage, name in (("super-network", "step"), ("search", "validation"), ("deliver", "step")):
        assert speeds[30][stage][name] < speeds[75][stage][name], stage


@pytest.mark.parametrize("slowed", [1, 5])
def test_a_busy_machine_is_told_by_the_work_it_does_in_the_time_that_passes(
    slowed: int, teacher: Callable[..., Teacher], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, worked = iter(range(0, 10**6, slowed)), iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(passed)))
    monkeypatch.setattr("time.process_time", lambda: float(next(worked)))
    assert times(teacher()).slowed == slowed


def test_what_workers_do_is_timed_with_one_thread(
    teacher: Callable[..., Teacher], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    def noted(*given: Any) -> torch.Tensor:
        used.append(torch.get_num_threads())
        return scores_of(*given)

    monkeypatch.setattr(module, "scores_of", noted)
    found = times(teacher(training=replace(QUICK, threads=2)))
    assert set(used) == {1, 2}
    assert (used[0], used[-1]) == (2, 1)
    assert min(asdict(found).values()) > 0


def seconds(run: PipelineRun, plan: dict[str, dict[str, int]]) -> dict[str, float]:
    one = {"step": 0.5, "judging": 2.0, "batch": 0.5, "answer": 0.2, "answers": 1.0, "validation": 2.0, SLOWED: 1.0}
    return budget_of(run).estimate(plan, dict.fromkeys(plan, one))


def test_the_stages_take_what_their_steps_take(tmp_path: Path) -> None:
    run = begun(compression(tmp_path, deliver__epochs=1), tmp_path / "out")
    rows = 10
    plan = {
        "teacher": {"steps": 10},
        "scores": {"batches": 6},
        "super-network": {"steps": 20},
        "search": {"trials": 30, "rows": rows},
        "deliver": {"steps": 5},
    }
    assert seconds(run, plan) == {
        "teacher": 5.0 + 3 * 2.0 + WRITING,  # judged, and then tested and measured as delivered models are
        "scores": 3.0,
        "super-network": 10.0 + 1.0 + 2.0,  # the teacher is asked once for every row
        "search": START + 60.0,
        "deliver": START + 2 * (WRITING + 2 * 2.0 + 2.5),
    }
    few = seconds(run, {**plan, "super-network": {"steps": 3}, "search": {"trials": 30, "rows": rows // 2}})
    assert few["super-network"] == pytest.approx(1.5 + 0.6 + 2.0)  # or for those that are shown
    assert few["search"] == pytest.approx(START + 30.0)  # half of the rows
