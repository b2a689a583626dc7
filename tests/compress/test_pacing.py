"""Plans that follow the machine: by a clock of the test's own, and with trainings that are killed after a revision."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.compress.test_plan import BOUNDS, SPEEDS, USUAL
from tests.compress.test_trainings import digest
from tests.compress.tiny import job

from formwright.compress.folders import Folders, read_stored
from formwright.compress.job import Started
from formwright.compress.pacing import Pacing, Revision, Schedule
from formwright.compress.plan import Bounds, Budget, Plan, Speeds, within
from formwright.compress.trainings import Work, teacher
from formwright.train.fit import Run
from formwright.train.loop import Paused, Saving

BUDGET = Budget(0.5, USUAL, BOUNDS, workers=2, models=4)
BUSY = replace(
    SPEEDS,
    **{name: 10 * getattr(SPEEDS, name) for name in ("teacher", "network", "validation", "writing")},
    slowed=10.0,
)


class Machine:
    """A clock, and what was told."""

    def __init__(self, path: Path, speeds: Speeds, budget: Budget | None = BUDGET) -> None:
        self.now, self.told, self.path, self.speeds = 0.0, list[str](), path, speeds
        plan = USUAL if budget is None else within(budget, speeds)
        self.budget, self.first = budget, Schedule(plan, speeds)

    def pacing(self, schedule: Schedule | None = None) -> Pacing:
        measured = lambda: self.speeds  # noqa: E731
        return Pacing(schedule or self.first, self.path, self.budget, measured, self.told.append, lambda: self.now)

    def kept(self) -> Schedule:
        return read_stored(self.path, Schedule.from_json)


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
    machine = Machine(tmp_path / "plan.json", BUSY)
    pacing = machine.pacing()
    assert pacing.plan.teacher_steps == BOUNDS.least.teacher_steps
    done = train(machine, pacing, "teacher", lambda step: 5.0 if step < 5 else 0.5)
    idle = within(BUDGET, SPEEDS)
    assert done > 0.5 * idle.teacher_steps
    pacing.enter("super-network")
    assert train(machine, pacing, "super-network", lambda _: 1.5) > 0.5 * idle.network_steps
    machine.speeds = SPEEDS
    pacing.enter("search")
    assert pacing.plan.evaluations > 0.5 * idle.evaluations
    assert machine.now < 1800
    assert len(machine.told) >= 2
    assert all(line.startswith("plan revised") and "\n" not in line for line in machine.told)


def test_a_machine_that_becomes_busy_cuts_what_is_left(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", SPEEDS)
    pacing = machine.pacing()
    first = pacing.plan
    train(machine, pacing, "teacher", lambda _: 0.5)
    pacing.enter("super-network")
    done = train(machine, pacing, "super-network", lambda step: 1.5 if step < 10 else 6.0)
    assert BOUNDS.least.network_steps <= done < first.network_steps
    assert machine.now < 1800
    assert machine.kept().plan.network_steps == done
    assert f"-> {done:,}" in machine.told[-1]


def test_a_plan_that_is_kept_changes_nothing_and_says_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", SPEEDS)
    pacing = machine.pacing()
    planned = pacing.plan.teacher_steps
    assert train(machine, pacing, "teacher", lambda _: 0.51) == planned
    assert machine.told == []
    assert pacing.steps("teacher") == [Revision("teacher", 0, planned)]


def test_without_hours_nothing_is_ever_revised(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", SPEEDS, None)
    pacing = machine.pacing()
    assert pacing.next_look("teacher", 0) is None
    assert train(machine, pacing, "teacher", lambda _: 99.0) == USUAL.teacher_steps
    pacing.enter("super-network")
    pacing.enter("search")
    assert pacing.plan == USUAL
    assert machine.told == []


def test_a_revision_is_in_the_file_before_it_takes_effect(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", BUSY)
    pacing = machine.pacing()
    pacing.steps("teacher")
    machine.now += 5.0
    steps = pacing.look("teacher", 10, 0.5)
    assert steps is not None
    kept = machine.kept()
    assert kept.plan.teacher_steps == steps == kept.revisions[-1].steps
    assert kept.revisions[-1].since == 10
    assert json.loads(machine.path.read_text(encoding="utf-8"))["revisions"][-1]["steps"] == steps
    again = machine.pacing(kept)
    assert again.plan == pacing.plan
    look = again.next_look("teacher", 0)
    assert look is not None
    assert look > 10  # what was decided is not decided again


def test_time_before_an_interruption_counts(tmp_path: Path) -> None:
    """A run that was stopped after most of its time has only the rest left for its other stages."""
    machine = Machine(tmp_path / "plan.json", SPEEDS)
    pacing = machine.pacing()
    train(machine, pacing, "teacher", lambda _: 0.5)
    pacing.enter("super-network")
    free = pacing.plan.evaluations
    again = machine.pacing(machine.kept())
    again.resumed(5, 1500.0)  # of its super-network, as its checkpoint says
    again.trained()
    again.enter("search")
    assert machine.kept().spent > 1500.0
    assert again.plan.evaluations < free


def test_an_honest_estimate_where_the_least_takes_longer(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", SPEEDS, replace(BUDGET, hours=0.1))
    pacing = machine.pacing()
    pacing.steps("teacher")
    machine.now += 400.0
    pacing.look("teacher", 10, 40.0)
    pacing.enter("super-network")
    assert pacing.plan.network_steps == BOUNDS.least.network_steps
    assert any("longer than the 0.1 asked for" in line for line in machine.told)


def test_a_resumed_training_is_looked_at_soon(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "plan.json", SPEEDS)
    pacing = machine.pacing()
    pacing.steps("teacher")
    assert [pacing.next_look("teacher", step) for step in (0, 10, 45)] == [10, 20, 80]
    pacing.resumed(45, 20.0)
    assert [pacing.next_look("teacher", step) for step in (45, 55)] == [55, 80]


STEPS = 24


@pytest.fixture
def started(tmp_path: Path) -> Started:
    return job(tmp_path).started()


def revised(folders: Folders, schedule: Schedule | None = None) -> Pacing:
    """Give a pace by which 12 planned steps become 24 at the first look: the machine is faster than it was."""
    bounds = Bounds(Plan(1, 1, 1, scored=2, judged=1), Plan(STEPS, 6, 4, scored=2, judged=10))
    budget = Budget(1.0, Plan(STEPS, 6, 4, scored=2, judged=10), bounds, 1, 2)
    slow = replace(SPEEDS, teacher=1000.0, slowed=1000.0)
    return Pacing(schedule or Schedule(Plan(12, 6, 4, scored=2), slow), folders.plan, budget)


def conduct(told: list[int], stop: Callable[[int], bool] = lambda _: False) -> Any:
    @contextmanager
    def conducted(_: str, folder: Path, __: int) -> Iterator[Run]:
        def after_step(step: int, _: float) -> None:
            told.append(step)
            if stop(step):
                raise Paused

        yield Run(Saving(folder, 4), after_step=after_step)

    return conducted


def work(started: Started, folders: Folders, pacing: Pacing, how: Any) -> Work:
    return Work(started.begun, started.method, folders, pacing, how)


@pytest.mark.slow
def test_a_training_goes_on_under_its_revised_plan(started: Started, tmp_path: Path) -> None:
    folders, told = Folders(tmp_path / "out"), list[int]()
    teacher(work(started, folders, revised(folders), conduct(told)))
    assert told == list(range(STEPS))
    kept = read_stored(folders.plan, Schedule.from_json)
    assert [(one.since, one.steps) for one in kept.revisions] == [(0, 12), (10, STEPS)]


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 10, 13])
def test_a_training_killed_around_a_revision_is_the_same_in_the_end(at: int, started: Started, tmp_path: Path) -> None:
    whole, cut = Folders(tmp_path / "whole"), Folders(tmp_path / "cut")
    wanted = teacher(work(started, whole, revised(whole), conduct([])))
    with pytest.raises(Paused):
        teacher(work(started, cut, revised(cut), conduct([], lambda step: step == at)))
    again = revised(cut, read_stored(cut.plan, Schedule.from_json))
    assert digest(teacher(work(started, cut, again, conduct([])))) == digest(wanted)


@pytest.mark.slow
def test_a_revision_survives_the_loss_of_the_checkpoints_after_it(started: Started, tmp_path: Path) -> None:
    """The steps before it are repeated as they were, and it takes effect at its own step."""
    whole, cut = Folders(tmp_path / "whole"), Folders(tmp_path / "cut")
    wanted = teacher(work(started, whole, revised(whole), conduct([])))
    with pytest.raises(Paused):
        teacher(work(started, cut, revised(cut), conduct([], lambda step: step == 13)))
    for folder in sorted(cut.checkpoints("teacher").iterdir()):
        (folder / "tensors.safetensors").write_bytes(b"lost")
    told: list[int] = []
    again = revised(cut, read_stored(cut.plan, Schedule.from_json))
    assert digest(teacher(work(started, cut, again, conduct(told)))) == digest(wanted)
    assert told == list(range(STEPS))


def test_every_part_that_is_scored_is_shown(started: Started, tmp_path: Path) -> None:
    shown: dict[str, list[int]] = {}

    @contextmanager
    def show(what: str, total: int) -> Iterator[Any]:
        shown[f"{what} {total}"] = []
        yield lambda step, _: shown[f"{what} {total}"].append(step)

    folders = Folders(tmp_path / "out")
    pacing = Pacing(Schedule(Plan(2, 1, 1, scored=5)))
    teacher(replace(work(started, folders, pacing, conduct([])), show=show))
    assert shown == {"scoring parts of the teacher 5": [0, 1, 2, 3, 4], "judging the teacher 1": [0]}
