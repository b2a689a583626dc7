"""A plan that follows the machine: revised from measured speed before each stage, and while a training runs.

Every revision is written to the plan file before it takes effect. A run that was killed reads it there, and goes on as
if it had never been interrupted.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from formwright.compress.folders import write_json
from formwright.compress.plan import STAGES, TRAININGS, Budget, Done, Plan, Speeds, left, within
from formwright.core.checks import stored_fields

_FIRST_LOOK = 10  # steps after which a training is first looked at; then after twice as many, and so on
_LEAST_CHANGE = 0.1  # of a training's steps, below which a plan stays as it is


@dataclass(frozen=True)
class Revision:
    """Say that from step `since` on, a training has `steps` steps in all."""

    stage: str
    since: int
    steps: int


@dataclass(frozen=True)
class Schedule:
    """A plan as it stands: the speeds it was made by, the stage it has come to, the seconds before it, the revisions.

    A stage's first revision has `since` 0, and says with how many steps it began.
    """

    plan: Plan
    speeds: Speeds | None = None
    stage: str = STAGES[0]
    spent: float = 0.0
    revisions: tuple[Revision, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Schedule":
        """Read what `to_json` gave."""
        values = stored_fields(cls, data)
        return cls(
            Plan.from_json(values["plan"]),
            None if values["speeds"] is None else Speeds(**stored_fields(Speeds, values["speeds"])),
            values["stage"],
            values["spent"],
            tuple(Revision(**stored_fields(Revision, one)) for one in values["revisions"]),
        )


class Pacing:
    """Keep the schedule of a compression up to date in its file, if any; without a budget the plan never changes.

    A schedule with a budget has speeds. `measured` times the pieces of the work anew, `tell` receives one line for each
    revision, `clock` gives seconds.
    """

    def __init__(
        self,
        schedule: Schedule,
        path: Path | None = None,
        budget: Budget | None = None,
        measured: Callable[[], Speeds] | None = None,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule = schedule
        self._path, self._budget, self._measured, self._tell, self._clock = path, budget, measured, tell, clock
        self._began, self._before, self._resumed = clock(), 0.0, 0

    @property
    def plan(self) -> Plan:
        """Give the plan as it stands."""
        return self.schedule.plan

    @property
    def _speeds(self) -> Speeds:
        assert self.schedule.speeds is not None, "a plan that changes was made by speeds"
        return self.schedule.speeds

    def write(self) -> None:
        """Write the schedule whole."""
        if self._path is not None:
            write_json(self._path, self.schedule.to_json())

    def enter(self, stage: str) -> None:
        """Come to a stage: plan what is left by the speed of the last one, once, and write it before the stage begins.

        Before the search everything is timed anew, as trainings say little of how fast models are judged.
        """
        if STAGES.index(stage) <= STAGES.index(self.schedule.stage):
            return
        now = self._clock()
        spent, self._began, self._before = self._elapsed(now), now, 0.0
        self.schedule = replace(self.schedule, stage=stage, spent=spent)
        if self._budget is not None:
            if stage == "search" and self._measured is not None:
                self.schedule = replace(self.schedule, speeds=self._measured())
            done = Done(STAGES[: STAGES.index(stage)], 0, spent)
            self._revise(within(self._budget, self._speeds, self.plan, done), done)
        self.write()

    def steps(self, stage: str) -> list[Revision]:
        """Give the revisions of a training in their order, the first being its beginning, which is written once."""
        if not self._of(stage):
            began = Revision(stage, 0, getattr(self.plan, TRAININGS[stage]))
            self.schedule = replace(self.schedule, revisions=(*self.schedule.revisions, began))
            self.write()
        return self._of(stage)

    def next_look(self, stage: str, step: int) -> int | None:
        """Give the step after which a training is looked at next; None where it never is again."""
        if self._budget is None:
            return None
        last, look = self._of(stage)[-1], _FIRST_LOOK
        while look <= max(step, last.since):  # what was revised already stays
            look *= 2
        again = self._resumed + _FIRST_LOOK  # the machine may be another one by now
        look = min(look, again) if again > max(step, last.since) else look
        return look if look < last.steps else None

    def resumed(self, step: int, seconds: float) -> None:
        """Record that some steps of a training were done before this process began, and their seconds."""
        self._resumed, self._before = step, seconds

    def look(self, stage: str, step: int, step_seconds: float) -> int | None:
        """Plan anew by how long the last steps took; give the training's new number of steps where that changes."""
        assert self._budget is not None
        name = TRAININGS[stage]
        speeds = _as_fast(self._speeds, stage, step_seconds)
        self.schedule = replace(self.schedule, speeds=speeds)
        done = Done(STAGES[: STAGES.index(stage)], step, self._elapsed(self._clock()))
        plan, before = within(self._budget, speeds, self.plan, done), getattr(self.plan, name)
        if abs(getattr(plan, name) - before) <= _LEAST_CHANGE * before:
            return None
        revision = Revision(stage, step, getattr(plan, name))
        self._revise(plan, done)
        self.schedule = replace(self.schedule, revisions=(*self.schedule.revisions, revision))
        self.write()
        return revision.steps

    def trained(self) -> None:
        """Take note that the training under way is over, so that its time is not forgotten."""
        now = self._clock()
        self.schedule = replace(self.schedule, spent=self._elapsed(now))
        self._began, self._before = now, 0.0
        self.write()

    def _of(self, stage: str) -> list[Revision]:
        return [one for one in self.schedule.revisions if one.stage == stage]

    def _elapsed(self, now: float) -> float:
        return self.schedule.spent + self._before + now - self._began

    def _revise(self, plan: Plan, done: Done) -> None:
        """Take a new plan, and say what changed."""
        assert self._budget is not None
        changes = [f"{name} {old:,} -> {new:,}" for name, old, new in _differences(self.plan, plan)]
        self.schedule = replace(self.schedule, plan=plan)
        if changes:
            rest = sum(left(plan, self._speeds, self._budget, done).values())
            total = (done.seconds + rest) / 3600
            over = f", longer than the {self._budget.hours:g} asked for" if total > self._budget.hours else ""
            self._tell(f"plan revised from measured speed: {', '.join(changes)}; about {total:.2g} hours in all{over}")


def _as_fast(speeds: Speeds, stage: str, step_seconds: float) -> Speeds:
    """Give the speeds of a machine on which a training's step takes so long: all else is as much faster or slower.

    A step of the super-network was timed together with the answer of the teacher, unless these are known already.
    """
    name = "teacher" if stage == "teacher" else "network"
    ratio = step_seconds / getattr(speeds, name)
    timed = ("teacher", "judging", "network", "answer", "answers", "validation", "alone")
    slowed = max(1.0, speeds.slowed * ratio)
    assumed = {key: getattr(speeds, key) * slowed / speeds.slowed for key in ("writing", "start")}
    found = replace(speeds, **{key: getattr(speeds, key) * ratio for key in timed}, **assumed, slowed=slowed)
    return found if name == "teacher" else replace(found, answer=0.0, answers=0.0)


_NAMES = {
    "teacher_steps": "teacher steps",
    "network_steps": "super-network steps",
    "evaluations": "evaluations",
    "finetune_steps": "fine-tuning steps of each model",
    "scored": "scored batches",
    "judged": "rows of an evaluation",
}


def _differences(before: Plan, after: Plan) -> list[tuple[str, int, int]]:
    pairs = zip(_NAMES.values(), asdict(before).values(), asdict(after).values(), strict=True)
    return [(name, old, new) for name, old, new in pairs if old != new]
