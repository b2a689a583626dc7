"""How a budget of time becomes the steps of blocks and students."""

import json
from pathlib import Path

import pytest
from tests.pipeline.block_runs import begun, finished, here, made, settled, stage, steps_of

from formwright.pipeline import blocks_times
from formwright.pipeline.pacing import begin_pacing

BLOCK, JUDGING, STUDENT, FIT = 0.1, 5.0, 0.2, 30.0


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let work take given times; the only item slows it down."""
    slower = [1.0]
    monkeypatch.setattr(blocks_times, "fitting_seconds", lambda _: slower[0] * FIT)
    monkeypatch.setattr(blocks_times, "block_seconds", lambda *_: (slower[0] * BLOCK, slower[0] * JUDGING))
    monkeypatch.setattr(blocks_times, "student_seconds", lambda _: slower[0] * STUDENT)
    return slower


@pytest.mark.parametrize("hours", [None, 0.1, 1.0, 1000.0])
def test_a_plan_keeps_its_budget(tmp_path: Path, speeds: list[float], hours: float | None) -> None:
    run = settled(begun(tmp_path, hours=hours, settings={"blocks.steps": 300, "students.steps": 1000}))
    pacing = begin_pacing(run)
    assert pacing is not None
    rounds, students = pacing.plan["blocks"]["steps"], pacing.plan["students"]["steps"]
    seconds = pacing.budget.estimate(pacing.plan, pacing.schedule.speeds)
    assert seconds == {
        "bases": FIT,
        "blocks": pytest.approx(2 * (3 * rounds * BLOCK + JUDGING)),  # two blocks, one after the other
        "students": pytest.approx(2 * students * STUDENT),
    }
    if hours is None:
        assert (rounds, students) == (300, 1000)
    else:
        assert sum(seconds.values()) <= 3600 * hours * 0.9
        assert sum(seconds.values()) > 3600 * hours * 0.85 or rounds == 50 * 300


def test_too_few_hours_plan_the_least(tmp_path: Path, speeds: list[float]) -> None:
    pacing = begin_pacing(settled(begun(tmp_path, hours=0.001)))
    assert pacing is not None
    assert [pacing.plan[name]["steps"] for name in ("blocks", "students")] == [10, 10]


@pytest.mark.slow
def test_students_have_the_time_that_blocks_left(tmp_path: Path, speeds: list[float]) -> None:
    """The machine was ten times slower when the plan was made; a run that is called again keeps the revised plan."""
    speeds[0] = 10.0
    measured = iter((10.0, 1.0))
    original = blocks_times.fitting_seconds

    def next_speed(source: object) -> float:
        speeds[0] = next(measured)
        return original(source)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_times, "fitting_seconds", next_speed)
        run = made(tmp_path, hours=0.15)
    kept = json.loads((run.out / "plan.json").read_bytes())["plan"]
    assert kept["students"]["steps"] > kept["blocks"]["steps"]
    assert len(steps_of(run, "students")) == 2 * kept["students"]["steps"]
    again = made(tmp_path, hours=0.15)
    assert steps_of(again, "blocks") == steps_of(again, "students") == []


@pytest.mark.slow
def test_everything_takes_some_time() -> None:
    run = finished()
    source = run.artifact(stage(run, "source"))
    before = {name: tensor.clone() for name, tensor in source.teacher.state_dict().items()}
    for name in ("bases", "blocks", "students"):
        found = stage(run, name).speeds(here(run, name))
        assert all(0 <= value < 600 for value in found.values())
        assert sum(found.values()) > 0
    after = source.teacher.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
