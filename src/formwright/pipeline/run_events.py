"""What the log of a study notes of the runs that work on it, and how their workers do that."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.pipeline.run import PipelineRun, RunOptions, StageRun
from formwright.pipeline.study_place import Opened
from formwright.pipeline.task_choice import TaskChoice
from formwright.study.events import DATA_WARNINGS
from formwright.study.identity import own_name
from formwright.study.processes import STOPPED, exit_code, run_workers
from formwright.study.replay import Replay
from formwright.study.stop import Clock, Ledger, Stop
from formwright.study.store import Log
from formwright.tasks.task import changes, contents
from formwright.train.interrupt import gentle_interruption

if TYPE_CHECKING:
    from formwright.pipeline.study_place import Opened, Place
    from formwright.tasks.task import Task


_RUN, _DATA = "run", "data"  # in the events that begin a run


def begin_run(log: Log, options: RunOptions, task: "Task | None", notes: Mapping[str, Any]) -> None:
    """Note that a run begins: with which options, on which data, and what else it notes."""
    data: dict[str, Any] = {}
    if task is not None:
        warnings = [asdict(warning) for warning in task.warnings]
        data = {_DATA: contents(task), **({DATA_WARNINGS: warnings} if warnings else {})}
    log.append("started", own_name(), {"begins": True, _RUN: asdict(options), **data, **notes})


def last_options(log: Log) -> RunOptions:
    """Give the options of the last run, so that the next one is conducted alike."""
    kept = [event.data[_RUN] for event in log.read() if event.kind == "started" and _RUN in event.data]
    known = {one.name for one in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in kept[-1].items() if name in known}) if kept else RunOptions()


def refuse_changed_data(log: Log, choice: TaskChoice, task: "Task") -> None:
    """Refuse a task whose rows differ from those that the study began with: scores of both cannot be compared."""
    kept = [event.data[_DATA] for event in log.read() if event.kind == "started" and _DATA in event.data]
    if kept and (found := changes(kept[0], contents(task))):
        where = choice.name if choice.data is None else f"{choice.name} in {choice.data}"
        raise IllegalInput(
            f"the data of {where} changed since the study {log.name} began: {', '.join(found)}. Scores on different "
            "rows cannot be compared: restore the data to resume this study, or search in another output folder"
        )


def extended(opened: Opened, limits: Mapping[str, Any]) -> Stop:
    """Give the stop conditions of a study with further limits, by the fields of `Stop`; None leaves a limit as it is.

    A limit replaces that of its kind and, unless it is about failures alone, those limits that ended the study:
    it would end at once again. Less than what is done already is refused.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    if not given.keys() - {"failures"}:
        return replace(opened.search.stop, **given)
    replay, ledger = so_far(opened)
    done = {"trials": len(replay.history.trials), "steps": ledger.spent.steps, "seconds": ledger.elapsed}
    for name, amount in done.items():
        if name in given and given[name] < amount:
            detail = f"{amount:,.1f}" if isinstance(amount, float) else f"{amount:,}"
            raise IllegalInput(
                f"the study {opened.place.name} has {detail} {name} already, more than the {given[name]:,} asked for; "
                "give at least as many"
            )
    objectives = [Objective.parse(text) for text in (*opened.search.objectives, *opened.search.limits)]
    over = opened.search.stop.reached(replay.history, ledger, objectives)
    changes: dict[str, Any] = dict.fromkeys(over) | given
    return replace(opened.search.stop, **changes)


def noted(stop: Stop) -> dict[str, Any]:
    """Give what the launcher notes when it begins, so that every worker stops at this end."""
    return {"stop": asdict(stop)}


def so_far(opened: Opened) -> tuple[Replay, Ledger]:
    """Give the trials of a study, and what they cost, as of its last event."""
    events, clock = opened.log.read(), Clock()
    replay = Replay.of(events, opened.space)
    clock.feed(events)
    return replay, replay.ledger(clock.elapsed(clock.last))


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
    from formwright.study.worker import TrialInterrupted, Worker

    def between_steps() -> None:
        if asked():
            raise TrialInterrupted

    try:
        with place.open(wait=True, run=run) as opened:
            Worker(opened.study(), between_steps=between_steps).run()
    except TrialInterrupted:
        return STOPPED
    return 0


def work_here(place: "Place") -> int:
    """Work on a study in this process until it is over or the user asks to stop; return an exit code."""
    with gentle_interruption() as interruption:
        return exit_code(partial(work_at, place), lambda: interruption.asked)


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
