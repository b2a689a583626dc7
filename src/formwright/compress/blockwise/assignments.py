"""The trainings of a block-wise compression as they are handed to processes: named, and read from files there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.costs import PartCosts
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job, Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.prepared import read_prepared, read_times
from formwright.compress.blockwise.rounds import steps_of_block
from formwright.compress.blockwise.rows import is_trained
from formwright.compress.blockwise.students import StudentTraining, is_delivered
from formwright.train.fit import Run


@dataclass(frozen=True)
class Assignment:
    """A block, by its number, or a student, by the name of its size."""

    job: Job
    out: Path
    plan: Plan
    kind: Literal["block", "student"]
    name: str

    @property
    def steps(self) -> int:
        """Count the steps of the training."""
        return steps_of_block(self.job, self.plan) if self.kind == "block" else self.plan.student_steps

    @property
    def saved(self) -> Path:
        """Name the folder in which the training saves how far it is."""
        folders = Folders(self.out)
        if self.kind == "student":
            return folders.student(self.name, self.plan.student_steps)
        return folders.checkpoints(f"block-{self.name}")

    def run(self, run: Run) -> None:
        """Do what is not done yet of the training."""
        selection = selection_of(self.job.started(), self.out, self.plan)
        if self.kind == "block":
            selection.training(int(self.name)).run(run)
        else:
            StudentTraining(selection, self.name, selection.chosen()[self.name]).run(run)


def selection_of(started: Started, out: Path, plan: Plan) -> Selection:
    """Read what all trainings share: it was prepared before."""
    folders = Folders(out)
    return Selection(
        started, plan, PartCosts(started.menu, read_times(folders, started.menu)), read_prepared(folders), folders
    )


def blocks_left(started: Started, out: Path, plan: Plan) -> list[Assignment]:
    """List the blocks that are not trained yet."""
    numbers = [number for number in range(started.menu.blocks) if not is_trained(Folders(out), number)]
    return [Assignment(started.job, out, plan, "block", str(number)) for number in numbers]


def students_left(started: Started, out: Path, plan: Plan) -> list[Assignment]:
    """List the sizes that are not delivered yet, or were taught for another number of steps."""
    names = [size.name for size in started.sizes if not is_delivered(Folders(out), size.name, plan.student_steps)]
    return [Assignment(started.job, out, plan, "student", name) for name in names]
