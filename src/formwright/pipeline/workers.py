"""Workers of a study: processes on this machine, actors on Ray, or this very process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from formwright.pipeline.run import PipelineRun, StageRun
from formwright.study.launch import exit_code, run_workers
from formwright.study.processes import STOPPED
from formwright.train.interrupt import gentle_interruption

if TYPE_CHECKING:
    from formwright.pipeline.run_folder import Opened, Place


@dataclass(frozen=True)
class StudyWork:
    """Work on the study of a stage until it is over, wherever this is called; travels to other processes."""

    run: PipelineRun
    stage: str

    def __call__(self, asked: Callable[[], bool]) -> int:
        """Work until the study is over or the process is asked to stop; return an exit code."""
        stage: Any = self.run.pipeline.named[self.stage]
        return work_at(stage.place(self.run.stage(stage)), asked, self.run)


def work_at(place: "Place", asked: Callable[[], bool], run: PipelineRun | None = None) -> int:
    """Work on a study in this process until it is over or `asked` to stop; return an exit code."""
    from formwright.study.worker import Interrupted, Worker

    def between_steps() -> None:
        if asked():
            raise Interrupted

    try:
        with place.open(wait=True, run=run) as opened:
            Worker(opened.study(), between_steps=between_steps).run()
    except Interrupted:
        return STOPPED
    return 0


def work_here(place: "Place") -> int:
    """Work on a study in this process until it is over or the user asks to stop; return an exit code."""
    with gentle_interruption() as wish:
        return exit_code(partial(work_at, place), lambda: wish.asked)


def run_study(run: StageRun, opened: "Opened") -> bool:
    """Run the workers of a study until it is over; give False where the user asked to stop."""
    options, work = run.options, StudyWork(run.run.for_process(), run.name)
    with run.run.display.study(opened) as show:

        def look() -> None:
            show()
            for observer in run.run.observers:
                observer.follow(run.name, opened.log)

        if options.ray is not None:
            from formwright.study.on_ray import run_on_ray

            storage = opened.place.storage
            return run_on_ray(
                work, options.workers, look, options.ray, cpus=options.ray_cpus, gpus=options.ray_gpus, storage=storage
            )
        return run_workers(work, options.workers, look)
