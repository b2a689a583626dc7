"""What `formwright compress` does, stage by stage; every stage is skipped where its result is there."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.cli.conduct import Interrupted, conducted
from formwright.cli.cost_columns import size_line
from formwright.cli.output import echo, note, print_json, print_table, report_cut
from formwright.cli.progress import clock, showing
from formwright.cli.record import Identity
from formwright.cli.study_run import Wishes, search_and_deliver, sitting_json
from formwright.cli.task_options import print_warnings
from formwright.compress.folders import RECORD, Folders, read_stored, write_json
from formwright.compress.job import Job, Started
from formwright.compress.pacing import Pacing, Schedule
from formwright.compress.plan import Plan, Speeds, within
from formwright.compress.remarks import closeness, remarks
from formwright.compress.speeds import measured_speeds
from formwright.compress.stages import Stages
from formwright.compress.weak_teacher import find_weakness
from formwright.core.errors import Unsuccessful
from formwright.cost.latency_table import LatencyTable
from formwright.nn.latency_table import measured_table, quick
from formwright.nn.task_model import TaskModel
from formwright.study.alone import alone_in
from formwright.study.compare import comparisons, conclusion
from formwright.study.conclusion import between
from formwright.study.finish import FINAL
from formwright.study.no_model import why_no_model
from formwright.study.place import Place
from formwright.study.run_record import RunOptions
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.interrupt import Interruption, gentle_interruption
from formwright.train.prepare import cut_rows

if TYPE_CHECKING:
    from formwright.study.delivered import Delivered


_BUSY = 1.3  # times that a step takes longer than alone, from which on it is said


@dataclass(frozen=True)
class Compression:
    """A job, where it is done, and how it is shown."""

    job: Job
    out: Path
    workers: int
    save_every: int
    force: bool
    as_json: bool
    command: str
    accept_weak_teacher: bool = False

    def conduct(self) -> None:
        """Do everything that is not done yet, and print what came out."""
        started = self.job.started()
        print_warnings(started.begun.prepared.task)
        folders = Folders(self.out)
        identity = Identity(_plain(asdict(started.job)), started.begun.digests(), RECORD, "compression")
        identity.refuse(self.out, self.force)
        table = self._table(started, folders)
        costs = started.costs(table)
        kept = started.limits(costs)
        report_cut(cut_rows(started.begun.prepared, started.begun.card), is_default=self.job.usual_length)
        for line in (started.begun.replaced, *started.told_above(costs)):
            if line:
                _tell(line)
        # nothing is written before everything can be done
        pacing = self._pacing(started, folders, started.smallest_share(costs))
        with alone_in(self.out, wait=False):
            identity.claim(self.out, self.force, kept=FINAL)  # where it is recorded that test rows were opened
            if table is not None and not folders.latency.is_file():
                write_json(folders.latency, table.to_json())
            pacing.write()
            stages = Stages(started, pacing, costs, folders)
            with gentle_interruption() as wish:
                place = self._train(stages, kept, wish, partial(identity.check, self.out))
            self._search(place, started)

    def _table(self, started: Started, folders: Folders) -> LatencyTable | None:
        """Give the latency table, measured where it is not there yet; None where no target is in milliseconds."""
        if not started.needs_latency:
            return None
        if folders.latency.is_file() and not self.force:
            return read_stored(folders.latency, LatencyTable.from_json)
        _tell("measuring the parts of the model on this machine")
        return measured_table(started.begun.card, self.job.hidden, measured=quick(started.begun.prepared.length or 1))

    def _pacing(self, started: Started, folders: Folders, share: float) -> Pacing:
        """Give the plan, made and shown where none is there, and revised on the way where the user gave hours."""

        def measured() -> Speeds:
            return measured_speeds(started.begun, started.training, share)

        budget = started.budget(self._side_by_side)
        if folders.plan.is_file() and not self.force:
            schedule = read_stored(folders.plan, Schedule.from_json)
        else:
            _tell("timing a few steps on this machine")
            speeds = measured()
            schedule = Schedule(started.usual if budget is None else within(budget, speeds), speeds)
            self._show(started, schedule.plan, speeds)
        return Pacing(schedule, folders.plan, budget, measured, _tell)

    @property
    def _side_by_side(self) -> int:
        """Count the workers that really work at once."""
        return min(self.workers, os.cpu_count() or 1)

    def _show(self, started: Started, plan: Plan, speeds: Speeds) -> None:
        seconds = plan.seconds(speeds, self._side_by_side, len(started.targets))
        name = started.begun.name
        rate = started.method.teacher_rate(plan.teacher_steps or 1)
        tuned = f"{plan.teacher_steps:,} steps of fine-tuning {name} at a rate of {rate:.2g}"
        tuned = tuned if plan.teacher_steps else f"{name} answers the task already"
        some = f" by {plan.judged:,} of {speeds.rows:,} rows" if plan.judged < speeds.rows else ""
        done = {
            "teacher": f"{tuned}, its parts scored on {plan.scored} batches",
            "super-network": f"{plan.network_steps:,} steps of all sub-networks",
            "search": f"{plan.evaluations:,} sub-networks judged{some}",
            "delivery": f"{len(started.targets)} models written, measured and tested",
        }
        width = max(map(len, done.values()))
        for stage, what in done.items():
            _tell(f"  {stage:<14} {what:<{width}}  about {clock(seconds[stage])}")
        total = sum(seconds.values())
        _tell(f"  {'in all':<14} {'':<{width}}  about {clock(total)}")
        if self.job.hours and total > 3600 * self.job.hours:
            short = f"{self.job.hours:g} hours are too few at this speed: the minimum is planned, which takes about"
            _tell(f"{short} {total / 3600:.2g} hours; more is done where the machine turns out to be faster")
        if speeds.slowed > _BUSY:
            _tell(f"the machine is busy: alone on it, all that takes about {clock(total / speeds.slowed)}")

    def _train(self, stages: Stages, kept: dict[str, str], wish: Interruption, check: Callable[[], None]) -> Place:
        """Do the stages up to the trained super-network, and give the study that searches it."""

        def conduct(what: str, folder: Path, steps: int) -> AbstractContextManager[Run]:
            return conducted(what, folder, steps, self.save_every, wish, check)

        known = stages.teacher(conduct, showing)
        if not stages.folders.network.is_dir():
            self._check_teacher(stages.started, known)
        choices, met = stages.search_space()
        for line in (f"the search space has {choices.count:.3g} sub-networks", *closeness(met)):
            _tell(line)
        stages.super_network(known, choices, conduct, showing)
        if wish.asked:
            raise Interrupted("the end of training")
        place = stages.place(choices, met, kept)
        _tell("testing the teacher")
        stages.note(place, known, choices, met)
        return place

    def _check_teacher(self, started: Started, known: TaskModel) -> None:
        """Stop where the teacher is hardly better than an answer that ignores the input, unless the user accepts it."""
        with threads(self.job.threads):
            weakness = find_weakness(known, started.begun.prepared)
        if weakness is None:
            return
        if self.accept_weak_teacher:
            _tell(f"{weakness}; going on all the same, as --accept-weak-teacher says")
            return
        if self.as_json:
            print_json({"models": [], "weak_teacher": asdict(weakness)})
        hours = "" if self.job.hours is None else f" or more --hours (now {self.job.hours:g})"
        raise Unsuccessful(
            f"{weakness}. What it teaches is worth no more. Fine-tune it longer, with more --teacher-epochs (now "
            f"{self.job.teacher_epochs:g}){hours}, or at a higher --learning-rate (now "
            f"{self.job.training.learning_rate:g}), in another folder or with --force; or go on all the same with "
            "--accept-weak-teacher"
        )

    def _search(self, place: Place, started: Started) -> None:
        wishes = Wishes(RunOptions(self.workers, baseline=False), self.as_json, self.command)
        try:
            models, page = search_and_deliver(place, wishes)
        except KeyboardInterrupt:
            raise Interrupted("the search") from None
        said, reason = remarks(place), None
        with place.open() as opened:
            lines, pairs = conclusion(opened, models), comparisons(opened.log.read())
            sizes, measured = size_line(opened, models[0]) if models else "", sitting_json(opened)
            if all(model.role == "teacher" for model in models):
                reason = why_no_model(opened)
        if self.as_json:
            facts: dict[str, Any] = {"models": [asdict(model) for model in models], "measured": measured}
            facts |= {"remarks": said, "report": str(page)}
            facts |= {"comparisons": [asdict(pair) for pair in pairs.values()], "conclusion": lines}
            print_json(facts | ({} if reason is None else {"no_model": asdict(reason)}))
        else:
            _print(models, page, started)
            for line in [sizes, *lines, *said]:
                echo(line)
        if reason is not None:
            raise Unsuccessful(str(reason))


def _print(models: "list[Delivered]", page: Path, started: Started) -> None:
    metric = started.begun.prepared.task.metric
    first = next((model for model in models if model.role == "teacher"), None)
    full = {} if first is None else first.costs
    split, rows = "test" if models and models[0].test is not None else "validation", []
    for model in models:
        scores = model.test if model.test is not None else model.validation
        share = f"{model.costs['macs'] / full['macs']:.0%}" if full.get("macs") else ""
        ms = f"{model.costs['latency_ms']:.2f}" if "latency_ms" in model.costs else ""
        known = model.evidence.get(split)
        interval = "" if known is None else between(known.intervals[metric])
        cells = (f"{model.params:,}", share, ms, model.path)
        rows.append((model.name, f"{scores[metric]:.4f}", interval, *cells))
    majority = models[0].evidence[split].majority if models and split in models[0].evidence else None
    if majority is not None:
        rows.append((majority.answer, f"{majority.scores[metric]:.4f}", "", "", "", "", ""))
    heads = ["model", f">{split} {metric}", ">95 % interval", ">parameters", ">MACs", ">ms", "folder"]
    print_table(heads, rows)
    echo(f"the page: {page}")


def _tell(line: str) -> None:
    note(line)


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
