"""What `formwright compress --recipe nas-bert` does, stage by stage; each is skipped where its result is there."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formwright.cli.conduct import Interrupted
from formwright.cli.output import echo, note, print_json, print_table
from formwright.cli.progress import clock, showing
from formwright.cli.record import Identity
from formwright.compress.blockwise.assignments import blocks_left, selection_of, students_left
from formwright.compress.blockwise.costs import PartCosts
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Job, Started
from formwright.compress.blockwise.page import write_page
from formwright.compress.blockwise.plan import Plan, Shape, revised, within
from formwright.compress.blockwise.prepared import prepare, read_times
from formwright.compress.blockwise.speeds import measured_speeds
from formwright.compress.blockwise.students import delivered
from formwright.compress.blockwise.workers import Crew
from formwright.compress.folders import RECORD, read_stored, write_json
from formwright.cost.operation_times import OperationTimes
from formwright.nn.latency_table import quick
from formwright.nn.operation_times import measured_operations, measurements
from formwright.study.alone import alone_in
from formwright.train.interrupt import Interruption, gentle_interruption
from formwright.train.loop import Paused


@dataclass(frozen=True)
class BlockCompression:
    """A job, where it is done, and how it is shown."""

    job: Job
    out: Path
    workers: int
    save_every: int
    force: bool
    as_json: bool

    def conduct(self) -> None:
        """Do everything that is not done yet, and print what came out."""
        started = self.job.started()
        started.refuse()
        identity = Identity(self.job.options(), started.digests(), RECORD, "compression")
        identity.refuse(self.out, self.force)
        folders = Folders(self.out)
        times = self._times(started, folders)
        started.refuse_slow(PartCosts(started.menu, times))
        plan = self._plan(started, folders)  # nothing is written before everything can be done
        with alone_in(self.out, wait=False):
            identity.claim(self.out, self.force, kept="")
            for path, found in ((folders.latency, times), (folders.plan, plan)):
                if not path.is_file():
                    write_json(path, found.to_json())
            with gentle_interruption() as wish, _paused():
                models, page = self._stages(started, folders, plan, wish)
        self._print(models, page)

    def _stages(
        self, started: Started, folders: Folders, plan: Plan, wish: Interruption
    ) -> tuple[list[dict[str, Any]], Path]:
        crew, measured = Crew(self.workers, self.save_every, lambda: wish.asked, showing), quick(started.longest)
        began = time.monotonic()
        try:
            _tell("fitting projections and embeddings to the teacher")
            prepare(started, folders)
            _refuse_to_go_on(wish, "the fit of the embeddings")
            crew.do("blocks", blocks_left(started, self.out, plan))
            _refuse_to_go_on(wish, "the end of the blocks")
        finally:  # what an interrupted run took counts too
            if self.job.hours is not None and not plan.revised:
                plan = replace(plan, spent=plan.spent + time.monotonic() - began)
                write_json(folders.plan, plan.to_json())
        plan = self._revised(started, folders, plan)
        selection = selection_of(started, self.out, plan)
        selection.choose(measured)
        crew.do("students", students_left(started, self.out, plan))
        models = delivered(selection, measured)
        page = write_page(selection, models, self.out / "report.html")
        named = {model["name"]: model for model in models}
        return [named[size.name] for size in started.sizes], page

    def _times(self, started: Started, folders: Folders) -> OperationTimes:
        """Give the times of operations, measured where they are not there yet."""
        if folders.latency.is_file() and not self.force:
            return read_times(folders, started.menu)
        _tell("measuring operations on this machine")
        with showing("operations", measurements(started.menu)) as tell:
            return measured_operations(
                started.menu, measured=quick(started.longest), after=lambda number: tell(number, None)
            )

    def _plan(self, started: Started, folders: Folders) -> Plan:
        """Give the plan, made and shown once: a run that goes on keeps to it, but for what students are taught."""
        method = self.job.method
        if folders.plan.is_file() and not self.force:
            kept = read_stored(folders.plan, Plan.from_json)
            return kept if self.job.hours is not None else replace(kept, student_steps=method.student_steps)
        speeds = measured_speeds(started)
        shape = self._shape(started)
        usual = Plan(method.round_steps, method.student_steps)
        plan = usual if self.job.hours is None else within(self.job.hours, usual, speeds, shape)
        seconds = plan.seconds(speeds, shape)
        done = {
            "preparation": "projections and embeddings fitted to the teacher",
            "blocks": f"{shape.blocks} blocks, {method.rounds + 1} times {plan.round_steps:,} steps each",
            "students": f"{shape.models} students, {plan.student_steps:,} steps each",
        }
        for stage, what in done.items():
            _tell(f"  {stage:<12} {what:<52} about {clock(seconds[stage])}")
        total = sum(seconds.values())
        _tell(f"  {'in all':<12} {'':<52} about {clock(total)}")
        if self.job.hours is not None and total > 3600 * self.job.hours:
            short = f"{self.job.hours:g} hours are too few at this speed: the minimum is planned, which takes about"
            _tell(f"{short} {total / 3600:.2g} hours")
        return plan

    def _shape(self, started: Started) -> Shape:
        return Shape(started.menu.blocks, self.job.method.rounds, len(started.sizes), self.workers)

    def _revised(self, started: Started, folders: Folders, plan: Plan) -> Plan:
        """Plan the students anew by the time that the blocks left, once, and write that before it takes effect."""
        if self.job.hours is None or plan.revised:
            return plan
        method = self.job.method
        usual = Plan(method.round_steps, method.student_steps)
        found = revised(self.job.hours, plan, usual, measured_speeds(started), self._shape(started))
        write_json(folders.plan, found.to_json())
        if found.student_steps != plan.student_steps:
            steps = f"steps of each student {plan.student_steps:,} -> {found.student_steps:,}"
            _tell(f"plan revised from measured speed: {steps}, after {clock(plan.spent)} for the blocks")
        return found

    def _print(self, models: list[dict[str, Any]], page: Path) -> None:
        if self.as_json:
            print_json({"models": models, "report": str(page)})
            return
        rows = [
            (
                model["name"],
                f"{model['params']:,}",
                f"{model['latency_ms']:.2f}",
                f"{model['chosen']['distance']:.4f}",
                f"{model['distance']:.4f}",
                model["path"],
            )
            for model in models
        ]
        print_table(["model", ">parameters", ">ms", ">distance before", ">after", "folder"], rows)
        lengths = sorted({model["length"] for model in models})
        echo(f"ms: one row of {' or '.join(map(str, lengths))} tokens, measured in turns on one thread")
        for model in models:
            if model.get("exceeded"):
                echo(
                    f"{model['name']} takes {model['latency_ms']:.2f} ms as a whole, more than was asked for: measure "
                    f"it again when the machine is idle (formwright measure {model['path']} --length "
                    f"{model['length']}), or ask for fewer milliseconds"
                )
        echo(f"the page: {page}")
        echo("next: formwright train FOLDER --task TASK --distil-from TEACHER")


@contextmanager
def _paused() -> Iterator[None]:
    try:
        yield
    except Paused as paused:
        raise Interrupted(str(paused)) from None


def _refuse_to_go_on(wish: Interruption, where: str) -> None:
    if wish.asked:
        raise Interrupted(where)


def _tell(line: str) -> None:
    note(line)
