"""How fast this machine is, found without changing what is to be trained."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.pipeline.compressions import QUICK, begun, compression

from formwright.pipeline import model_times as module
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.model_times import ModelTimes
from formwright.pipeline.pacing import budget_of, measured_speeds
from formwright.pipeline.plan import SLOWED, WRITING
from formwright.pipeline.run import PipelineRun, StageRun
from formwright.pipeline.search import START
from formwright.train.loop import scores_of

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
