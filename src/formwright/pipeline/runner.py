"""Run a pipeline: settle its options, claim its folder, and make what is not made yet, stage by stage."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from formwright.core.checks import folder_name
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.core.options import Stage
from formwright.core.text import clock
from formwright.pipeline.forecast import RunPlan, forecast_run
from formwright.pipeline.observers import observing
from formwright.pipeline.pacing import begin_pacing, budget_of
from formwright.pipeline.plan import KEPT_BACK, Planned
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.run_folder import (
    DONE,
    RUN,
    RunRecord,
    check_folder,
    claim_folder,
    clear_drafts,
    is_done,
    mark_done,
)
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import absolute_storage
from formwright.study.folder_lock import alone_in
from formwright.train.interrupt import gentle_interruption


def prepare(run: PipelineRun) -> RunRecord:
    """Settle every option, refuse what cannot be done, and give the record; nothing is written."""
    faults = [fault for name, stage in run.pipeline.named.items() for fault in range_faults(stage, name, Stage)]
    if faults:
        raise IllegalDesign(faults, what="pipeline")
    run.storage = absolute_storage(run.storage)
    run.study_name = run.study_name or _recorded_name(run)
    for name in list(run.pipeline.named):
        stage = run.pipeline.named[name]
        run.pipeline = run.pipeline.changed({name: stage.resolved(run.stage(stage))})
    _limit_search(run)
    if not run.resumes:  # what a run was begun with was checked then
        for stage in run.pipeline:
            stage.check(run.stage(stage))
    contents = {name: dict(stage.contents(run.stage(stage))) for name, stage in run.pipeline.named.items()}
    return RunRecord.of(run, contents)


def _limit_search(run: PipelineRun) -> None:
    """Where hours are given and no stage can be planned, end the search early enough for the stages after it."""
    hours = run.options.hours
    if hours is None or run.resumes or budget_of(run).amounts:
        return
    if len(searches := run.pipeline.of_kind(Search)) != 1:
        raise IllegalInput("hours cannot be planned for this run: none of its stages says how long it takes")
    search = searches[0]
    others = [stage.forecast(run.stage(stage)) for stage in run.pipeline if stage is not search]
    kept = sum(one.seconds or 0.0 for one in others if one is not None)
    seconds = max(1.0, 3600 * hours * (1 - KEPT_BACK) - kept)
    stop = replace(search.stop, seconds=min(seconds, search.stop.seconds or seconds))
    run.pipeline = run.pipeline.changed({run.pipeline.name_of(search): replace(search, stop=stop)})
    rest = f", and about {clock(kept)} are kept for the other stages" if kept else ""
    run.display.tell(f"plan: the search ends after {clock(seconds)} at the latest{rest}")


def _recorded_name(run: PipelineRun) -> str:
    """Name the studies of a run: after its folder, or as before where that has moved since."""
    known = None
    if (run.out / RUN).is_file() and not run.force:
        with suppress(IllegalInput):  # a record that cannot be read is refused later
            known = RunRecord.read(run.out).name
    return known or folder_name("a run", run.out.resolve().name)


def run_pipeline(run: PipelineRun) -> PipelineRun:
    """Run a pipeline to its end, or resume it where it stopped; raise `Interrupted` where the user stops it."""
    record = prepare(run)
    check_folder(run.out, record, force=run.force, resumes=run.resumes)
    with _locked(run):
        run.pacing = begin_pacing(run)  # before anything is written
        claim_folder(run.out, record, force=run.force, resumes=run.resumes)
        if run.pacing is not None:
            run.pacing.write()
        keys = run.pipeline.keys(record.contents)
        with observing(run):
            with gentle_interruption() as interruption:
                run.interruption = interruption
                for name in list(run.pipeline.named):
                    _make(run, _as_planned(run, name), keys[name])
                    if interruption.asked and name != list(run.pipeline.named)[-1]:
                        raise Interrupted(f"the end of the stage {name}")
            run.write_page()
    return run


def plan_run(run: PipelineRun) -> RunPlan:
    """Settle and check a run, with its folder and database, and estimate what it takes; nothing is written."""
    record = prepare(run)
    check_folder(run.out, record, force=run.force)
    return RunPlan(record.pipeline, forecast_run(run))


def _as_planned(run: PipelineRun, name: str) -> Stage:
    """Come to a stage in the plan of time, and give it with the amounts that are planned for it."""
    stage = run.pipeline.named[name]
    if run.pacing is None or not isinstance(stage, Planned) or name not in run.pacing.plan:
        return stage
    run.pacing.enter(name, timed_anew=stage.TIMED_ANEW)
    new = stage.planned(run.pacing.plan[name], run.stage(stage))
    if new is not stage:
        run.pipeline = run.pipeline.changed({name: new})
    return run.pipeline.named[name]


def _make(run: PipelineRun, stage: Stage, key: str) -> None:
    here = run.stage(stage)
    for observer in run.observers:
        observer.stage(here.name)
    if getattr(stage, "CONCURRENT", False):  # it keeps its own record of what is done
        stage.make(here)
    elif not is_done(here, key) or not stage.reaches(here):
        (here.folder / DONE).unlink(missing_ok=True)  # what is added to is not done
        run.forget(stage)
        clear_drafts(here)
        stage.make(here)
        mark_done(here, key)


@contextmanager
def _locked(run: PipelineRun) -> Iterator[None]:
    """Hold the folder of a run that one process alone may work in; searches bear several at once."""
    alone = any(not getattr(stage, "CONCURRENT", False) for stage in run.pipeline)
    with alone_in(run.out, wait=False) if alone else nullcontext():
        yield
