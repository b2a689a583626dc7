"""Plans that follow the machine: by a clock of the test's own, and with trainings that are killed after a revision."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.pipeline.compressions import Told
from tests.pipeline.test_plan import AMOUNTS, SPEEDS, bound, budget, slower

from formwright.core.errors import IllegalInput
from formwright.core.options import STAGES, Stage, option
from formwright.pipeline.pacing import (
    PLAN,
    Pacing,
    Revision,
    Schedule,
    _resumed,
    begin_pacing,
    budget_of,
    describe_plan,
    train_paced,
)
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import SLOWED, PacedTraining, Planned, Speeds, TimeBudget, WorkAmount, within
from formwright.pipeline.run import Interrupted, PipelineRun, RunOptions, StageRun
from formwright.pipeline.runner import run_pipeline
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.streams import Batch

BUSY = slower(15)


class Machine:
    """A clock, and what was told."""

    def __init__(self, path: Path, speeds: Speeds, hours: float | None = 0.5) -> None:
        self.now, self.told, self.path, self.speeds = 0.0, list[str](), path, speeds
        self.budget: TimeBudget = budget(hours)
        plan = self.budget.usual if hours is None else within(self.budget, speeds)
        self.first = Schedule(plan, speeds, hours=hours)

    def pacing(self, schedule: Schedule | None = None) -> Pacing:
        def measured() -> Speeds:
            return self.speeds

        given = schedule or self.first
        return Pacing(given, self.budget, self.path, measured, self.told.append, lambda: self.now)

    def kept(self) -> Schedule:
        return Schedule.read(self.path)


def paced(folder: Path, speeds: Speeds = SPEEDS, hours: float | None = 0.5) -> tuple[Machine, Pacing]:
    machine = Machine(folder / PLAN, speeds, hours)
    return machine, machine.pacing()


def train(machine: Machine, pacing: Pacing, stage: str, seconds: Callable[[int], float]) -> int:
    """Go through the steps of a training, each of which takes some seconds; give how many there were."""
    step = 0
    while step < pacing.steps(stage)[-1].steps:
        look = pacing.next_look(stage, step)
        until = pacing.steps(stage)[-1].steps if look is None else look
        took = sum(map(seconds, range(step, until)))
        machine.now += took
        if look is not None:
            pacing.look(stage, until, took / (until - step))
        step = until
    pacing.trained()
    return step


def test_a_moment_in_which_the_machine_was_busy_does_not_decide_the_plan(tmp_path: Path) -> None:
    """Planned at a tenth of the speed, the teacher gets its full steps once the machine is free."""
    machine, pacing = paced(tmp_path, BUSY)
    assert pacing.plan["teacher"]["steps"] == AMOUNTS["teacher"]["steps"].least
    done = train(machine, pacing, "teacher", lambda step: 7.5 if step < 5 else 0.5)
    idle = within(budget(0.5), SPEEDS)
    assert done > 0.5 * idle["teacher"]["steps"]
    pacing.enter("network")
    assert train(machine, pacing, "network", lambda _: 1.5) > 0.5 * idle["network"]["steps"]
    machine.speeds = SPEEDS
    pacing.enter("search", timed_anew=True)
    assert pacing.plan["search"]["trials"] > 0.5 * idle["search"]["trials"]
    assert machine.now < 1800
    assert len(machine.told) >= 2
    assert all("revised" in line and "\n" not in line for line in machine.told)


def test_a_machine_that_becomes_busy_cuts_what_is_left(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path)
    first = pacing.plan
    train(machine, pacing, "teacher", lambda _: 0.5)
    pacing.enter("network")
    done = train(machine, pacing, "network", lambda step: 1.5 if step < 10 else 6.0)
    assert AMOUNTS["network"]["steps"].least <= done < first["network"]["steps"]
    assert machine.now < 1800
    assert machine.kept().plan["network"]["steps"] == done
    assert f"-> {done:,}" in machine.told[-1]


def test_a_plan_that_is_kept_changes_nothing_and_says_nothing(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path)
    planned = pacing.plan["teacher"]["steps"]
    assert train(machine, pacing, "teacher", lambda _: 0.51) == planned
    assert machine.told == []
    assert pacing.steps("teacher") == [Revision("teacher", 0, planned)]


def test_without_hours_nothing_is_ever_revised(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path, SPEEDS, None)
    pacing.steps("teacher")
    assert pacing.next_look("teacher", 0) is None
    assert train(machine, pacing, "teacher", lambda _: 99.0) == AMOUNTS["teacher"]["steps"].usual
    pacing.enter("network")
    pacing.enter("search", timed_anew=True)
    assert pacing.plan == bound("usual")
    assert machine.told == []


def test_a_revision_is_in_the_file_before_it_takes_effect(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path, BUSY)
    pacing.steps("teacher")
    machine.now += 5.0
    steps = pacing.look("teacher", 10, 0.5)
    assert steps is not None
    kept = machine.kept()
    assert kept.plan["teacher"]["steps"] == steps == kept.revisions[-1].steps
    assert kept.revisions[-1].since == 10
    assert json.loads(machine.path.read_text(encoding="utf-8"))["revisions"][-1]["steps"] == steps
    again = machine.pacing(kept)
    assert again.plan == pacing.plan
    look = again.next_look("teacher", 0)
    assert look is not None
    assert look > 10  # what was decided is not decided again


def test_time_before_an_interruption_counts(tmp_path: Path) -> None:
    """A run that was stopped after most of its time has only the rest left for its other stages."""
    machine, pacing = paced(tmp_path)
    train(machine, pacing, "teacher", lambda _: 0.5)
    pacing.enter("network")
    free = pacing.plan["search"]["trials"]
    again = machine.pacing(machine.kept())
    again.resumed(5, 1500.0)  # of its super-network, as its checkpoint says
    again.trained()
    again.enter("search")
    assert machine.kept().spent == pytest.approx(machine.now + 1500.0)  # each second counts once
    assert again.plan["search"]["trials"] < free


def test_a_stage_that_is_resumed_is_not_planned_again(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path)
    train(machine, pacing, "teacher", lambda _: 0.5)
    pacing.enter("network")
    before, machine.told[:] = machine.kept(), []
    machine.now, machine.speeds = machine.now + 1000.0, BUSY
    again = machine.pacing(before)
    machine.now += 50.0
    again.enter("network", timed_anew=True)
    again.enter("teacher", timed_anew=True)
    assert (again.schedule, machine.kept(), machine.told) == (before, before, [])


def test_an_honest_estimate_where_the_least_takes_longer(tmp_path: Path) -> None:
    machine, pacing = paced(tmp_path, SPEEDS, 0.1)
    pacing.steps("teacher")
    machine.now += 400.0
    pacing.look("teacher", 10, 40.0)
    pacing.enter("network")
    assert pacing.plan["network"] == bound("least")["network"]
    assert any("longer than the 0.1 asked for" in line for line in machine.told)


def test_a_resumed_training_is_looked_at_soon(tmp_path: Path) -> None:
    _, pacing = paced(tmp_path)
    pacing.steps("teacher")
    assert [pacing.next_look("teacher", step) for step in (0, 10, 45)] == [10, 20, 80]
    pacing.resumed(45, 20.0)
    assert [pacing.next_look("teacher", step) for step in (45, 55)] == [55, 80]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"plan": 3}'])
def test_a_plan_that_cannot_be_read_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / PLAN).write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"plan\.json.*remove it"):
        Schedule.read(tmp_path / PLAN)


# --- a pipeline whose training is planned ---

STEPS = 24


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stage below be known by name, as one of a package with an entry point is."""
    entry = EntryPoint("train", "tests.pipeline.test_pacing:Train", STAGES.group)
    monkeypatch.setitem(STAGES._entries(), "train", entry)


class _Stream:
    def batch(self, step: int) -> Batch:
        generator = torch.Generator().manual_seed(step)
        inputs = torch.rand(4, 3, generator=generator)
        return Batch(inputs, inputs.sum(1, keepdim=True))


class _Line(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.dropout = torch.nn.Linear(3, 1), torch.nn.Dropout(0.1)

    def forward(self, inputs: torch.Tensor, *_: Any) -> torch.Tensor:
        found: torch.Tensor = self.layer(self.dropout(inputs))
        return found


@dataclass(frozen=True)
class Train(Stage, Planned):
    """Train a line for as many steps as are planned, of which each took `step` seconds when it was timed."""

    NAME: ClassVar[str] = "train"
    TRAINING: ClassVar[PacedTraining | None] = PacedTraining(takes_rest=True)
    least: int = option(12)
    step: float = option(1000.0)

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        return {"steps": WorkAmount(STEPS, self.least, STEPS, "steps of the line")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        return {"step": run.timed("line", lambda: self.step), SLOWED: 2.0}

    def seconds(self, amounts: Any, speeds: Any, run: StageRun) -> float:
        return float(amounts["steps"] * speeds["step"])

    def describe(self, amounts: Any, run: StageRun) -> str:
        return f"{amounts['steps']} steps"

    def make(self, run: StageRun) -> None:
        model = _Line()
        loss = lambda scores, batch: ((scores - batch.labels) ** 2).mean()  # noqa: E731
        train_paced(run, "line", model, _Stream(), loss, lambda steps: Hyperparameters(steps, 4, 1e-2), STEPS)
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "weights.json").write_text(json.dumps([one.tolist() for one in model.parameters()]))


def ran(
    out: Path, stop: int | None = None, hours: float | None = 1.0, stage: Stage | None = None, save_every: int = 4
) -> Told:
    display = Told(None if stop is None else stop + 1)
    options = RunOptions(save_every=save_every, hours=hours)
    run = display.run = PipelineRun(Pipeline(stage or Train()), out, options, display)
    if stop is None:
        run_pipeline(run)
    else:
        with pytest.raises(Interrupted):
            run_pipeline(run)
    return display


def weights(out: Path) -> str:
    return (out / "train" / "weights.json").read_text(encoding="utf-8")


def test_a_training_goes_on_under_its_revised_plan(tmp_path: Path) -> None:
    """The machine is faster than it was when it was timed."""
    display = ran(tmp_path / "out")
    assert display.all_steps == list(range(STEPS))
    kept = Schedule.read(tmp_path / "out" / PLAN)
    assert [(one.since, one.steps) for one in kept.revisions] == [(0, 12), (10, STEPS)]
    assert any("too few" in line for line in display.lines)
    assert any("busy" in line for line in display.lines)
    assert any("steps of the line 12 -> 24" in line for line in display.lines)


@pytest.mark.parametrize("at", [3, 10, 13])
def test_a_training_stopped_around_a_revision_is_the_same_in_the_end(at: int, tmp_path: Path) -> None:
    ran(tmp_path / "whole")
    first = ran(tmp_path / "cut", at)
    again = ran(tmp_path / "cut")
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert first.all_steps + again.all_steps == list(range(STEPS))


def test_a_revision_survives_the_loss_of_the_checkpoints_after_it(tmp_path: Path) -> None:
    """The steps before it are repeated as they were, and it takes effect at its own step."""
    ran(tmp_path / "whole")
    ran(tmp_path / "cut", 13)
    for folder in sorted((tmp_path / "cut" / "checkpoints" / "train").iterdir()):
        (folder / "tensors.safetensors").write_bytes(b"lost")
    assert ran(tmp_path / "cut").all_steps == list(range(STEPS))
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_run_killed_right_after_a_revision_goes_on_from_the_checkpoint_of_that_step(tmp_path: Path) -> None:
    ran(tmp_path / "whole")
    ran(tmp_path / "cut", 10, save_every=5)
    checkpoints = sorted((tmp_path / "cut" / "checkpoints" / "train").iterdir())
    assert [int(folder.name.removeprefix("step-")) for folder in checkpoints][-2:] == [10, 11]
    (checkpoints[-1] / "tensors.safetensors").write_bytes(b"lost")
    assert ran(tmp_path / "cut", save_every=5).all_steps == list(range(10, STEPS))
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_without_hours_a_training_has_its_usual_steps(tmp_path: Path) -> None:
    assert ran(tmp_path / "out", hours=None).all_steps == list(range(STEPS))
    assert ran(tmp_path / "out", hours=None).all_steps == []
    kept = Schedule.read(tmp_path / "out" / PLAN)
    assert [(one.since, one.steps) for one in kept.revisions] == [(0, STEPS)]


def test_other_hours_plan_again_what_is_left(tmp_path: Path) -> None:
    ran(tmp_path / "out", 3, hours=1.0)
    run = PipelineRun(Pipeline(Train()), tmp_path / "out", RunOptions(hours=100.0))
    pacing = begin_pacing(run)
    assert pacing is not None
    assert pacing.plan["train"]["steps"] == STEPS
    assert [row.what for row in describe_plan(run, pacing)] == ["24 steps"]


def test_other_hours_are_those_of_the_whole_run(tmp_path: Path) -> None:
    """Of two hours, of which one and a half are spent, half an hour is left, less what is kept back."""
    stage = Train(step=100.0)
    ran(tmp_path, 3, hours=1.0, stage=stage)
    kept = replace(Schedule.read(tmp_path / PLAN), spent=5400.0)
    fresh, later = (
        _resumed(replace(kept, spent=spent), budget_of(PipelineRun(Pipeline(stage), tmp_path, RunOptions(hours=2.0))))
        for spent in (0.0, 5400.0)
    )
    assert fresh.plan["train"]["steps"] == STEPS
    assert later.plan["train"]["steps"] == stage.least


def test_the_steps_with_which_a_training_began_stay_known(tmp_path: Path) -> None:
    stage = Train()
    run = PipelineRun(Pipeline(stage), tmp_path, RunOptions(hours=1.0))
    assert run.stage(stage).first_steps(7) == 7
    revisions = (Revision("train", 0, 20), Revision("train", 10, 14))
    run.pacing = Pacing(Schedule({"train": {"steps": 14}}, revisions=revisions), budget_of(run))
    assert run.stage(stage).first_steps(7) == 20


def test_hours_need_a_stage_that_can_be_planned(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Plain(Stage):
        NAME: ClassVar[str] = "plain"

        def make(self, run: StageRun) -> None:
            run.folder.mkdir(parents=True)

    with pytest.raises(IllegalInput, match="hours"):
        run_pipeline(PipelineRun(Pipeline(Plain()), tmp_path / "out", RunOptions(hours=1.0)))
    assert begin_pacing(PipelineRun(Pipeline(Plain()), tmp_path / "out")) is None
