"""What a run gives its stages: folders, inputs, tasks, a display, and the user's request to stop."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from formwright.core.checks import finite, natural
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.pipeline.designs import find_space
from formwright.pipeline.pipeline import Pipeline
from formwright.train.interrupt import Interruption

if TYPE_CHECKING:
    from formwright.pipeline.pacing import Pacing
    from formwright.pipeline.task_choice import TaskChoice
    from formwright.space.space import Space
    from formwright.tasks.task import Task
    from formwright.train.fit import Run

Progress = Callable[[int, float | None], None]  # called after each step, with its loss where it has one


class Interrupted(KeyboardInterrupt):
    """Say where the user stopped the run; everything up to there is saved."""


@dataclass(frozen=True)
class RunOptions:
    """Say how a run is conducted, which decides nothing of what it comes to: by how many workers, and where."""

    workers: int = 2
    ray: str | None = None
    ray_cpus: float = 1.0
    ray_gpus: float = 0.0
    save_every: int = 500
    hours: float | None = None

    def __post_init__(self) -> None:
        if natural("workers", self.workers) < 1:
            raise IllegalInput(f"workers must be at least 1, not {self.workers}")
        natural("save_every", self.save_every)
        for name in ("ray_cpus", "ray_gpus"):
            if finite(name, getattr(self, name)) < 0:
                raise IllegalInput(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.hours is not None and finite("hours", self.hours) <= 0:
            raise IllegalInput(f"hours must be above 0, not {self.hours}")

    def changed(self, **given: Any) -> "RunOptions":
        """Replace the options that are not None; refuse names that a run does not have."""
        if wrong := ", ".join(name for name in given if name not in vars(self)):
            raise IllegalInput(f"there is no option {wrong} of a run; there are: {', '.join(vars(self))}")
        return replace(self, **{name: value for name, value in given.items() if value is not None})


class Display(Protocol):
    """Show a run while it works: on a terminal, in a notebook, or nowhere."""

    def tell(self, line: str) -> None:
        """Show a line."""

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        """Show how far some work of `total` steps is; give the function that is called after each step."""

    def study(self, opened: Any) -> AbstractContextManager[Callable[[], None]]:
        """Show a search; give the function that is called several times a second."""

    def trainings(self, folder: Path, total: int) -> AbstractContextManager[None]:
        """Show the trainings that other processes do in a folder."""


class Quiet:
    """Show nothing."""

    def tell(self, line: str) -> None:
        """Show nothing."""

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Progress]:
        yield lambda *_: None

    @contextmanager
    def study(self, opened: Any) -> Iterator[Callable[[], None]]:
        yield lambda: None

    @contextmanager
    def trainings(self, folder: Path, total: int) -> Iterator[None]:
        yield


@dataclass(eq=False)
class PipelineRun:
    """A pipeline at work in its folder.

    `storage` is the database of its searches where that is not a file in the folder, `command` what started the run,
    `notes` what its searches note when they begin. `page` writes the page of the run, `observers` follow it.
    """

    pipeline: Pipeline
    out: Path
    options: RunOptions = field(default_factory=RunOptions)
    display: Display = field(default_factory=Quiet)
    storage: str | None = None
    study_name: str | None = None
    command: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    page: "Callable[[PipelineRun], None] | None" = None
    observers: tuple[Any, ...] = ()
    force: bool = False
    resumes: bool = False  # a study that is named by its database, perhaps without its folder
    interruption: Interruption = field(default_factory=Interruption)
    pacing: "Pacing | None" = None
    timings: dict[Any, Any] = field(default_factory=dict)
    _artifacts: dict[str, Any] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict)

    def for_process(self) -> "PipelineRun":
        """Give the run as it travels to another process: without display, observers and what was read."""
        return PipelineRun(
            self.pipeline, self.out.absolute(), self.options, storage=self.storage, study_name=self.study_name
        )

    def stage(self, stage: Stage) -> "StageRun":
        return StageRun(self, stage, self.pipeline.name_of(stage))

    def artifact(self, stage: Stage) -> Any:
        """Give what a stage made as an object, read once."""
        name = self.pipeline.name_of(stage)
        if name not in self._artifacts:
            self._artifacts[name] = stage.load(self.stage(stage))
        return self._artifacts[name]

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Give what `make` gives, which is called once in this run for each key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def write_page(self) -> None:
        """Write the page of the run, where there is something to write it."""
        if self.page is not None:
            self.page(self)

    def forget(self, stage: Stage) -> None:
        """Forget what was read of a stage that is made again."""
        self._artifacts.pop(self.pipeline.name_of(stage), None)

    def task(self, choice: "TaskChoice | Task") -> "Task":
        from formwright.pipeline.task_choice import TaskChoice

        if not isinstance(choice, TaskChoice):
            return choice
        found: Task = self.once(choice, choice.load)
        return found


@dataclass(frozen=True)
class StageRun:
    """What one stage of a run is given."""

    run: PipelineRun
    stage: Stage
    name: str

    @property
    def folder(self) -> Path:
        """Give the folder of the stage, which may not be there yet."""
        return self.run.out / self.name

    @property
    def checkpoints(self) -> Path:
        """Give the folder in which the stage saves how far it is; it is removed when the stage is done."""
        return self.run.out / "checkpoints" / self.name

    @property
    def options(self) -> RunOptions:
        return self.run.options

    @property
    def interruption(self) -> Interruption:
        return self.run.interruption

    def artifact(self, stage: Stage) -> Any:
        return self.run.artifact(stage)

    def task(self, choice: Any) -> "Task":
        return self.run.task(choice)

    def tell(self, line: str) -> None:
        self.run.display.tell(line)

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        return self.run.display.progress(what, total)

    def amount(self, name: str) -> int:
        """Give how much of something the stage does: as planned, or as its own options say."""
        if self.run.pacing is not None:
            return self.run.pacing.plan[self.name][name]
        found: Any = self.stage
        return int(found.amounts(self)[name].usual)

    def first_steps(self, usual: int) -> int:
        """Give the steps with which the training of the stage began, which the plan may have changed since."""
        return usual if self.run.pacing is None else self.run.pacing.steps(self.name)[0].steps

    def timed(self, key: Any, measure: Callable[[], Any]) -> Any:
        """Give what several stages time together: measured once for a plan, and again when everything is."""
        if key not in self.run.timings:
            self.run.timings[key] = measure()
        return self.run.timings[key]

    def space(self, source: Any) -> "Space":
        """Find a space by its name or file, take it as it is, or take the one that a stage drew up."""
        drawn = self.artifact(source) if isinstance(source, Stage) else find_space(source)
        return cast("Space", getattr(drawn, "space", drawn))

    def stop_if_asked(self, where: str) -> None:
        """Leave the stage where the user asked to stop; what it saved is taken up again."""
        if self.interruption.asked:
            raise Interrupted(where)

    @contextmanager
    def training(self, what: str, steps: int, folder: Path | None = None) -> "Iterator[Run]":
        """Give a training that is saved every N steps, shown, and stopped between two steps on request."""
        from formwright.train.fit import Run
        from formwright.train.loop import Paused, Saving

        with self.progress(what, steps) as tell:

            def after_step(step: int, loss: float) -> None:
                tell(step, loss)
                for observer in self.run.observers:
                    observer.step(self.name, step, loss)
                if self.interruption.asked and step + 1 < steps:
                    raise Paused(f"step {step + 1:,} of {steps:,} of {what}")

            try:
                yield Run(Saving(folder or self.checkpoints, self.options.save_every), after_step=after_step)
            except Paused as paused:
                raise Interrupted(str(paused)) from None
