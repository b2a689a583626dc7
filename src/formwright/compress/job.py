"""A compression: what the user wishes, what follows from it, and the study that searches its sub-networks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.compress.begin import Begun, begin
from formwright.compress.folders import Folders
from formwright.compress.method import Method
from formwright.compress.plan import Bounds, Budget, Order, Plan
from formwright.compress.space import Reach, low_end
from formwright.compress.targets import LATENCY, Range, Target, limits, told_above
from formwright.compress.trainings import is_trained, network_recipe
from formwright.core.records import Objective
from formwright.cost import COSTS
from formwright.cost.latency_table import LatencyTable
from formwright.search import make_searcher
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.assemble import find_task, make_training
from formwright.study.config import Config, DistillationChoice, TaskChoice, TrainingChoice
from formwright.study.stop import Stop
from formwright.supernet.automatic import MULTIPLE
from formwright.supernet.hidden import stream_groups
from formwright.supernet.parts import groups
from formwright.tasks.metrics import metric
from formwright.train.distil import Mix
from formwright.train.fit import Training, head_of
from formwright.train.judge import ONE_ANSWER
from formwright.train.streams import Shuffled, lengths_of

Costs = Mapping[str, Callable[[Card], float]]
_MOST_EPOCHS, _MOST_EVALUATIONS = 20, 1000  # EFTNAS's own
_LEAST = Plan(teacher_steps=40, network_steps=60, evaluations=30, scored=16, judged=512)


@dataclass(frozen=True)
class Job:
    """Everything that decides what a compression comes to, but for what `hours` make of it on this machine.

    One that is `hastened` fine-tunes the teacher at a higher rate where the hours leave it fewer steps. With
    `usual_length` the length of the training is taken from the data when the job is started.
    """

    model: str
    task: TaskChoice
    targets: tuple[str, ...]
    configurations: int
    hours: float | None
    teacher_epochs: float
    epochs: float
    evaluations: int
    finetune: float
    training: TrainingChoice
    network_rate: float
    between: int
    labels: float
    temperature: float
    order: Order
    whole: bool
    hidden: tuple[int, ...]
    searcher: str
    options: Mapping[str, Any]
    threads: int
    device: str
    seed: int
    hastened: bool = False
    usual_length: bool = False

    def started(self) -> "Started":
        """Read model and task; refuse what cannot be compressed."""
        targets = tuple(Target.parse(text) for text in self.targets)
        begun = begin(self.model, find_task(self.task), None if self.usual_length else self.training.length)
        job = self
        if self.usual_length:  # a number from here on, so that the record says it and a run that is resumed keeps it
            training = replace(self.training, length=begun.prepared.length or self.training.length)
            job = replace(self, training=training, usual_length=False)
        found = Started(job, targets, begun)
        found.refuse()
        return found

    @property
    def method(self) -> Method:
        """Say how the stages are done."""
        made = make_training(self.training)
        training = replace(made, recipe=replace(made.recipe, seed=self.seed), threads=self.threads, device=self.device)
        mix = Mix(labels=self.labels, scores=1 - self.labels, temperature=self.temperature)
        return Method(
            training, self.network_rate, mix, self.between, self.configurations, self.whole, self.order, self.hidden
        )


@dataclass(frozen=True, eq=False)
class Started:
    """A job with its model and its task."""

    job: Job
    targets: tuple[Target, ...]
    begun: Begun

    def refuse(self) -> None:
        """Refuse, before anything is trained, what a later stage would refuse."""
        network_recipe(self.training.recipe, 1, self.method)
        if self.job.hidden:
            stream_groups(self.begun.card, head_of(self.begun.prepared.task))  # refuses what it cannot run through
        goals = [Objective.parse(text) for text in self._objectives(target.cost for target in self.targets)]
        space, trials = self._ends.space, self.job.evaluations
        make_searcher(self.job.searcher, space, goals, trials=trials, steps=1, **self.job.options)

    @cached_property
    def _ends(self) -> ElasticChoices:
        """List the least that is still a model and the model itself."""
        parts = groups(self.begun.card)
        heads = tuple(_least_and_all(1, group.members) for group in parts if group.kind == "heads")
        channels = tuple(_least_and_all(MULTIPLE, group.members) for group in parts if group.kind == "channels")
        return ElasticChoices(self.begun.card, heads, channels, self.job.hidden)

    @property
    def length(self) -> int:
        """Give the most tokens of a row: as many as the job says, and no more than the model reads."""
        return self.begun.prepared.length or self.job.training.length  # images have no length

    @property
    def needs_latency(self) -> bool:
        """Tell whether a target is in milliseconds."""
        return any(target.cost == LATENCY for target in self.targets)

    @cached_property
    def training(self) -> Training:
        """Give the training of the teacher, with the dropout of the job in the model's own settings."""
        found = self.job.method.training
        settings = replace(self.begun.imported.settings, dropout=self.job.training.dropout)
        return replace(found, settings=settings)

    @property
    def method(self) -> Method:
        """Say how the stages are done, in the model's own settings."""
        usual = self._steps(self.job.teacher_epochs) if self.job.hastened else None
        return replace(self.job.method, training=self.training, usual_steps=usual)

    def costs(self, table: LatencyTable | None) -> dict[str, Callable[[Card], float]]:
        """Give the costs that the targets name, the first of them first."""

        def counted(name: str) -> Callable[[Card], float]:
            return lambda card: float(COSTS.get(name)(card, self.length).value)

        names = dict.fromkeys(target.cost for target in self.targets)
        return {name: table if name == LATENCY and table is not None else counted(name) for name in names}

    def limits(self, costs: Costs) -> dict[str, str]:
        """Give the targets as limits by name; refuse those that no sub-network can meet."""
        return limits(self.targets, self._ranges(costs))

    def told_above(self, costs: Costs) -> list[str]:
        """Say which targets ask for nothing, since they lie above what the model costs."""
        return told_above(self.targets, self._ranges(costs))

    def reaches(self, costs: Costs) -> list[Reach]:
        """Say from where to where the space is drawn up, by each cost that a target names, the first one first.

        It begins below the lowest target, and ends at the model or, where that shall not be, at the highest target.
        """
        least, found = replace(self._ends, hidden=()).smallest, []
        for name, cost in costs.items():
            full = cost(self.begun.card)
            amounts = [target.of(full) for target in self.targets if target.cost == name]
            high = full if self.job.whole else max(amounts)
            found.append(Reach(name, cost, low_end(cost(least), min(amounts)), high))
        return found

    def smallest_share(self, costs: Costs) -> float:
        """Give the cost of the smallest sub-network as a share of the model's."""
        return min(reach.low / reach.cost(self.begun.card) for reach in self.reaches(costs))

    def _ranges(self, costs: Costs) -> dict[str, Range]:
        least, card = self._ends.smallest, self.begun.card
        return {name: Range(cost(least), cost(card)) for name, cost in costs.items()}

    @property
    def usual(self) -> Plan:
        """Say how much each stage does without a limit of time: as the epochs say."""
        return Plan(
            self._steps(self.job.teacher_epochs) if is_trained(self.begun, self.job.order) else 0,
            self._steps(self.job.epochs),
            self.job.evaluations,
            self._steps(self.job.finetune) if self.job.finetune else 0,
        )

    def budget(self, workers: int) -> Budget | None:
        """Give what the plan is scaled to, if the user gave hours."""
        if self.job.hours is None:
            return None
        usual = replace(self.usual, judged=len(self.begun.prepared.validation.examples))
        return Budget(self.job.hours, usual, self._bounds(usual), workers, len(self.targets))

    def _bounds(self, usual: Plan) -> Bounds:
        """Say what is worth doing at least and at most in each stage."""
        single = self.begun.prepared.task.kind in ONE_ANSWER  # others are judged by all their rows together
        least = replace(
            _LEAST,
            teacher_steps=min(usual.teacher_steps, _LEAST.teacher_steps),
            finetune_steps=min(usual.finetune_steps, 1),
            judged=min(usual.judged, _LEAST.judged) if single else usual.judged,
        )
        most = replace(usual, network_steps=self._steps(_MOST_EPOCHS), evaluations=_MOST_EVALUATIONS)
        return Bounds(least, most)

    def _steps(self, epochs: float) -> int:
        lengths = lengths_of(self.begun.prepared.train.examples)
        return max(1, round(epochs * Shuffled(lengths, self.job.training.batch, self.job.seed).batches_per_epoch))

    def config(
        self, plan: Plan, costs: Mapping[str, Any], kept: Mapping[str, str], folders: Folders, first: Sequence[Any]
    ) -> Config:
        """Give the configuration of the study that searches the sub-networks, `first` those that drew up the space."""
        return Config(
            space=folders.inside(folders.space),
            task=self.job.task,
            objectives=self._objectives(costs),
            stop=Stop(trials=plan.evaluations),
            searcher=self.job.searcher,
            options=self.job.options,
            evaluator="shared",
            training=replace(
                self.job.training, steps=max(1, plan.finetune_steps), length=self.length, device=self.job.device
            ),
            keep=len(self.targets),
            final_steps=plan.finetune_steps,
            seed=self.job.seed,
            weights=folders.inside(folders.network),
            latency_table=folders.inside(folders.latency) if self.needs_latency else None,
            targets=kept,
            first=tuple(first),
            distillation=DistillationChoice(folders.inside(folders.teacher), self.job.labels, self.job.temperature)
            if plan.finetune_steps
            else None,
            judged_rows=plan.judged if plan.judged < len(self.begun.prepared.validation.examples) else None,
        )

    def _objectives(self, costs: Iterable[str]) -> tuple[str, ...]:
        task = self.begun.prepared.task
        return f"{task.metric}:{metric(task.metric).direction}", *(f"{name}:min" for name in dict.fromkeys(costs))


def _least_and_all(least: int, members: int) -> tuple[int, ...]:
    return tuple(sorted({min(least, members), members}))


def usual_folder(model: str, task: str) -> Path:
    """Name the folder of a compression whose user named none."""
    words = [Path(model).name or "MiniLM", *Path(task).parent.parts, Path(task).stem]
    return Path("compressed") / "-".join(word for word in words if word.strip("./\\"))
