"""The stage of a search: a study of a space, whose log is its artifact."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, option
from formwright.core.protocols import Evaluator, Searcher
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import COSTS, Meter, cost, counted_costs, is_measured, params
from formwright.pipeline.evaluators import EvaluatorPart, Setting, TrainFully, TrainInStages
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.limits import ALWAYS, Limits
from formwright.pipeline.plan import SLOWED, Planned, WorkAmount
from formwright.pipeline.run import Interrupted, StageRun
from formwright.pipeline.run_folder import kept_stage
from formwright.pipeline.search_checks import check_search
from formwright.pipeline.task_choice import USUAL_LENGTH, TaskChoice, TrainingChoice
from formwright.search.baselines import First
from formwright.search.searchers import SearcherPart, searcher, usual_searcher
from formwright.space.space import Space
from formwright.space.zoo import SPACES
from formwright.study.stop import Stop
from formwright.study.study import StudySetup, searched

if TYPE_CHECKING:
    from formwright.pipeline.model_times import ModelTimes
    from formwright.pipeline.study_place import Opened, Place
    from formwright.study.store import Log
    from formwright.tasks.task import Task

START = 10.0  # seconds until processes have imported what they need and have read their model
_SAMPLED = 20  # designs by which a space is known before it is searched


@dataclass(frozen=True)
class Search(Stage, Planned):
    """Search a space for the designs that are best by the objectives within the limits.

    `space` is a published space's name, `FILE.py:NAME`, a space, or a stage that draws one up. `objectives` are goals
    such as `accuracy:max`, by default the task's own and the costs in `minimise`; `limits` are bounds such as
    `params<=5e6`. `first` are designs, as their space writes them, that are evaluated before the searcher proposes any.
    What is None is chosen from the space, the task and the data when the run begins.
    """

    NAME: ClassVar[str] = "search"
    CONCURRENT: ClassVar[bool] = True
    TIMED_ANEW: ClassVar[bool] = True  # trainings say little of how fast models are judged

    space: str | Stage | Any = option(about="name of a space, FILE.py:NAME, or the stage that draws it up")
    task: TaskChoice | None = option(None, "the task that designs are trained for")
    objectives: tuple[str, ...] = option((), "goals, such as accuracy:max; by default the task's own, and minimise")
    limits: tuple[str, ...] = option((), "bounds, such as params<=5e6 or latency_ms<=5")
    searcher: SearcherPart | None = option(None, "what proposes designs (`formwright list searchers`)")
    evaluator: EvaluatorPart | None = option(None, "how a design is scored (`formwright list evaluators`)")
    training: TrainingChoice = option(TrainingChoice(), "how designs are trained")
    stop: Stop = option(Stop(trials=30), "when the search ends", extent=True)
    first: tuple[Any, ...] = option((), "designs that are judged first", hashed=False)
    cost_table: Stage | None = option(None, "the stage that measured the parts of a model, to add up a measured cost")
    seed: int = option(0, "random seed", least=0, most=2**63 - 1)
    minimise: tuple[str, ...] = option((), "costs to minimise next to the task's own goal, where objectives are empty")

    # --- what follows from the options -------------------------------------------------------------------------------

    def found_space(self, run: StageRun) -> Space:
        return run.space(self.space)

    def first_designs(self, run: StageRun) -> tuple[Any, ...]:
        """Give the designs that are judged first: those of the options, and those that drew up the space."""
        drawn = run.artifact(self.space) if isinstance(self.space, Stage) else None
        return (*self.first, *getattr(drawn, "first", ()))

    @property
    def length(self) -> int:
        """Give the tokens of a row at which costs are counted."""
        return self.training.length or USUAL_LENGTH

    @property
    def all_objectives(self) -> tuple[Objective, ...]:
        """Give what is improved, and then what is limited."""
        limits = Limits.parse(self.limits, self.length)
        goals = [Objective.parse(text) for text in self.objectives]
        return (*goals, *limits.cheap, *limits.measured, *limits.scores)

    def setting(self, run: StageRun, *, quickly: bool = True) -> Setting:
        """Give what the evaluator binds to; `quickly` leaves out metrics that cost much and that nobody asked for."""
        task = None if self.task is None else run.task(self.task)
        if task is not None and quickly:
            task = _judged_quickly(task, (*self.objectives, *self.limits))
        assert self.evaluator is not None
        tokeniser = None if task is None else self.evaluator.tokeniser(run)
        training = None if task is None else self.training.make()
        return Setting(
            self.found_space(run), self.seed, task, training, tuple(self._raced(run)), run.artifact, tokeniser
        )

    def _raced(self, run: StageRun) -> list[Callable[[Card], float]]:
        """Give the costs by which a sub-network has rivals: all that are lowered, or else the parameters."""
        names = [Objective.parse(text).name for text in self.objectives]
        lowered = [name for name in names if name in COSTS.names()] or ["params"]
        meters, counted = self.meters(run), partial(cost, length=self.length)
        return [meters[name] if name in meters else partial(counted, name=name) for name in lowered]

    def meters(self, run: StageRun) -> dict[str, Meter]:
        """Give what tells the measured costs that objectives and limits name: a table of a stage, or measurements."""
        names = dict.fromkeys(one.name for one in self.all_objectives if is_measured(one.name))
        if not names:  # without torch, which takes seconds to import
            return {}
        from formwright.nn.latency import TabledLatency
        from formwright.train.device import choose_device

        table: Any = None if self.cost_table is None else run.artifact(self.cost_table)
        found: dict[str, Meter] = {}
        for name in names:
            known: Any = COSTS.get(name)
            if table is not None and name == table.COST:
                found[name] = TabledLatency(table)
            else:
                found[name] = known.meter(self.length, choose_device(self.training.device).type)
        return found

    def bound_evaluator(self, run: StageRun, meters: Mapping[str, Meter] | None = None) -> Evaluator:
        """Make the evaluator of the study: scores, and the costs that its objectives and limits name."""
        from formwright.evaluate.context import Combine

        assert self.evaluator is not None
        setting = self.setting(run)
        wanted = dict.fromkeys((*ALWAYS, *(objective.name for objective in self.all_objectives)))
        scored = self.evaluator.metrics(setting.task) or ()  # a proxy may be a cost as well
        costs: dict[str, Callable[[Card], float]] = {}
        if isinstance(self.some_card(run), Card):  # nothing can be counted of designs that are not ours
            counted = [name for name in wanted if name in counted_costs() and name not in scored]
            costs = {name: partial(cost, name=name, length=self.length) for name in counted}
        measured = self.meters(run) if meters is None else meters
        return Combine((self.evaluator.bind(setting),), {**costs, **measured})

    def bound_searcher(self, run: StageRun, planned: Stop | None = None) -> Searcher:
        """Make the searcher; `planned` is the end that the study had first, by which it is scaled for good."""
        assert self.searcher is not None
        space, limits = self.found_space(run), Limits.parse(self.limits, self.length)
        stop = planned or self.stop

        def legal(card: Card) -> bool:
            return limits.legal(card) and (self.evaluator is None or self.evaluator.scores_design(run, card))

        made = self.searcher.bind(space, self.all_objectives, legal, stop.trials, self.training.steps)
        designs = tuple(space.from_json(design) for design in self.first_designs(run))
        return First(space, designs, made, legal) if designs else made

    def study(self, run: StageRun, log: "Log", folder: Path) -> StudySetup:
        """Build the study, whose log and folder are given; refuse data that changed since it began."""
        from formwright.pipeline.run_events import refuse_changed_data

        if self.task is not None:
            refuse_changed_data(log, self.task, run.task(self.task))
        # measured once for each card: by the gate, before anything is trained, and not again for the observation
        meters = self.meters(run)
        gate = Limits.parse(self.limits, self.length).gate(meters)
        planned = searched(log.config).get("stop")  # a searcher whose study is extended stays as it was
        searcher = self.bound_searcher(run, None if planned is None else Stop(**planned))
        evaluator, objectives = self.bound_evaluator(run, meters), self.all_objectives
        space = self.found_space(run)
        return StudySetup(log, space, searcher, evaluator, objectives, self.stop, folder, self.seed, gate)

    # --- the plan of time --------------------------------------------------------------------------------------------

    def amounts(self, run: StageRun) -> dict[str, WorkAmount] | None:
        if self.evaluator is None or self.stop.trials is None:
            return None
        return self.evaluator.amounts(self.stop.trials, run)

    def speeds(self, run: StageRun) -> dict[str, float]:
        assert self.evaluator is not None
        return self.evaluator.speeds(run)

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        assert self.evaluator is not None
        side_by_side = min(run.options.workers, os.cpu_count() or 1)
        return speeds[SLOWED] * START + self.evaluator.seconds(amounts, speeds, run) / side_by_side

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        usual, rows = (self.amounts(run) or {}).get("rows"), amounts.get("rows", 0)
        some = f" by {rows:,} of {usual.usual:,} rows" if usual is not None and rows < usual.usual else ""
        return f"{amounts['trials']:,} designs evaluated{some}"

    def forecast(self, run: StageRun) -> Forecast | None:
        """Estimate what all trials take, by a design of middle size, and what the designs of the space cost."""
        cards = self.typical_cards(run)
        if not cards:
            return None
        assert self.evaluator is not None
        wanted = [*ALWAYS, *(one.name for one in self.all_objectives)]
        names = dict.fromkeys(name for name in wanted if name in counted_costs())
        counted = {name: [cost(card, name=name, length=self.length) for card in cards] for name in names}
        costs = {name: (min(values), max(values)) for name, values in counted.items()}
        trials, times = self.stop.trials, self.typical_times(run)
        if times is None or trials is None:
            return Forecast(self.stop.seconds, costs=costs)
        trial = self.evaluator.trial_steps(self.training.steps or 0) * times.alone + times.judging
        seconds = times.slowed * START + trials * trial / min(run.options.workers, os.cpu_count() or 1)
        disk = trials * self.evaluator.COPIES * BYTES * params(cards[len(cards) // 2])
        return Forecast(min(seconds, self.stop.seconds or seconds), disk, costs)

    def typical_cards(self, run: StageRun) -> list[Card]:
        """Give some designs of the space from the smallest to the largest; none where they are not known before."""
        if isinstance(self.space, Stage):
            return []
        space = self.found_space(run)
        cards = [space.card(space.sample(derive(self.seed, "forecast", turn))) for turn in range(_SAMPLED)]
        return sorted(cards, key=params) if isinstance(cards[0], Card) else []

    def typical_times(self, run: StageRun) -> "ModelTimes | None":
        """Time a design of middle size on this machine; None where designs are not trained for a task."""
        cards = self.typical_cards(run)
        if not cards or self.task is None or self.evaluator is None or not self.evaluator.TRAINS:
            return None
        from formwright.pipeline.model_times import measured_times
        from formwright.train.fit import fresh_model
        from formwright.train.prepare import prepare

        card, training = cards[len(cards) // 2], self.training.make()
        prepared = prepare(run.task(self.task), card, self.length)

        def measured() -> "ModelTimes":
            return measured_times(lambda how: fresh_model(card, prepared, how), prepared, training)

        return cast("ModelTimes", run.timed((self.NAME, card.digest, self.task), measured))

    def planned(self, amounts: Mapping[str, int], run: StageRun) -> "Search":
        assert self.evaluator is not None
        stop, evaluator = replace(self.stop, trials=amounts["trials"]), self.evaluator.planned(amounts, run)
        same = stop == self.stop and evaluator is self.evaluator
        return self if same else replace(self, stop=stop, evaluator=evaluator)

    # --- the stage ---------------------------------------------------------------------------------------------------

    def resolved(self, run: StageRun) -> "Search":
        found = replace(self, task=None if self.task is None else self.task.absolute(), space=_absolute(self.space))
        task = None if found.task is None else run.task(found.task)
        if found.evaluator is None:
            staged = found.searcher is not None and found.searcher.trains_in_slices
            found = replace(found, evaluator=TrainInStages() if staged else TrainFully())
        if not found.objectives:
            assert found.evaluator is not None
            own = own_goal(found.evaluator, task)
            # and the costs of the targets that a space is drawn up for
            lowered = dict.fromkeys((*getattr(found.space, "lowers", ()), *found.minimise))
            goals = [f"{name}:min" for name in lowered if name != own.partition(":")[0]]
            found = replace(found, objectives=(own, *goals))
        elif found.minimise:
            run.tell(f"{run.name} has objectives of its own, so that minimise ({', '.join(found.minimise)}) adds none")
        found = replace(found, minimise=())  # the objectives say all now
        if found.searcher is None:
            found = replace(found, searcher=found.usual_searcher(found.found_space(run)))
        return found if task is None else replace(found, training=found._training(run, task))

    def usual_searcher(self, space: Space) -> SearcherPart:
        """Choose the searcher that a space and the number of goals call for."""
        goals = sum(Objective.parse(text).bound is None for text in self.objectives)
        return searcher(usual_searcher(space, max(goals, 1)))

    def _training(self, run: StageRun, task: "Task") -> TrainingChoice:
        from formwright.tasks.row_length import FROM_SCRATCH
        from formwright.train.device import choose_device, device_name
        from formwright.train.hyperparameters import usual_steps
        from formwright.train.prepare import prepare, usual_length

        training, rows = self.training, len(task.search_view().train)
        if training.steps is None:
            training = replace(training, steps=usual_steps(training.default_steps, rows, training.batch))
        training = training.with_threads(getattr(kept_stage(run), "training", None))
        # of a cluster, each worker has a device of its own
        device = device_name(training.device) if run.options.ray else choose_device(_device(training, run)).type
        training = replace(training, device=device)
        if isinstance(self.space, Stage):  # sub-networks read what their super-network reads
            return replace(training, length=getattr(self.space, "length", training.length))
        card = self.some_card(run)
        if training.length is None:
            assert self.evaluator is not None
            least = self.evaluator.least_length()
            return replace(training, length=usual_length(task, card, FROM_SCRATCH, least=least))
        read = prepare(task, card, training.length).length
        if 0 < read < training.length:  # images have no length
            run.tell(f"rows have at most {read} tokens, not {training.length}: the designs read no more")
            return replace(training, length=read)
        return training

    def some_card(self, run: StageRun) -> Card:
        """Give the design of the space for which the task is prepared before the search."""
        space = self.found_space(run)
        return space.card(space.sample(derive(self.seed, "prepare")))

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        from formwright.tasks.task import contents

        own = {} if self.evaluator is None else self.evaluator.contents()
        return own if self.task is None else {**own, **contents(run.task(self.task))}

    def check(self, run: StageRun) -> None:
        check_search(self, run)

    def place(self, run: StageRun) -> "Place":
        """Say where the log and the files of the study are."""
        from formwright.pipeline.study_place import study_place

        return study_place(run)

    def make(self, run: StageRun) -> None:
        from formwright.pipeline.run_events import begin_run, refuse_changed_data, run_study
        from formwright.study.identity import own_name

        place = self.place(run)
        place.create(run.run.pipeline, run.name)
        with place.open(run=run.run) as opened:
            task = None if self.task is None else run.task(self.task)
            if task is not None and self.task is not None:
                refuse_changed_data(opened.log, self.task, task)
            if run.run.out.is_dir():
                place.folder.mkdir(exist_ok=True)  # of one search of several; what other stages made is next to it
            opened.make_folder()
            begin_run(opened.log, run.options, task, run.run.notes)
            if run.run.command:
                opened.log.append("note", own_name(), {"command": run.run.command})
            begun = opened.again()  # the run may have noted another end
            over = run_study(run, begun)
            if not over:
                begun.log.append("stopped", own_name(), {"reason": "interrupted"})
                run.run.write_page()
                raise Interrupted("the search")
            run.tell(f"the search is finished: {stop_reason(begun)}")
        run.run.write_page()

    def load(self, run: StageRun) -> "AbstractContextManager[Opened]":
        return self.place(run).open(run=run.run)


def own_goal(evaluator: EvaluatorPart, task: "Task | None") -> str:
    """Give the goal of a study whose user named none."""
    from formwright.tasks.metrics import metric

    if not evaluator.TRAINS or task is None:
        metrics = evaluator.metrics(task)
        if not metrics:
            raise IllegalInput("say what to improve, such as objectives=['accuracy:max']")
        return f"{metrics[0]}:max"
    return f"{task.metric}:{metric(task.metric).direction}"


def stop_reason(opened: "Opened") -> str:
    """Say why a study stopped last."""
    return str([event for event in opened.log.read() if event.kind == "stopped"][-1].data["reason"])


def _device(training: TrainingChoice, run: StageRun) -> str:
    """Name the device that was asked for; a run that is resumed keeps the one that `auto` stood for."""
    kept = getattr(kept_stage(run), "training", None) if training.device == "auto" else None
    return training.device if kept is None else str(kept.device)


def _judged_quickly(task: "Task", wanted: tuple[str, ...]) -> "Task":
    """Give the task with the metrics that a search is for, and those that cost next to nothing."""
    from formwright.tasks.metrics import without_writing

    names = [Objective.parse(text).name for text in wanted]
    return replace(task, metrics=without_writing(task.metrics, (task.metric, *names)))


def _absolute(space: Any) -> Any:
    """Name a published space, and make the path of a user's own file absolute: runs are resumed from anywhere."""
    if isinstance(space, Space) and space.name in SPACES.names() and SPACES.get(space.name) == space:
        return space.name
    if not isinstance(space, str):
        return space
    file, colon, name = space.rpartition(":")
    return f"{Path(file).resolve()}:{name}" if colon and file.endswith(".py") else space
