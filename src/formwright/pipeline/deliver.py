"""The stage that delivers the best designs of a search: trained longer, tested once, written as models that load."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from formwright.core.checks import folder_name
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage, option
from formwright.cost import params
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.plan import LOOKS, SLOWED, WRITING, Planned, WorkAmount
from formwright.pipeline.run import Interrupted, StageRun
from formwright.pipeline.search import START, Search

if TYPE_CHECKING:
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.study_place import Opened
    from formwright.train.distil import Teaching

_COPIES = 4  # of the weights of a model on disk: its folder, and a checkpoint with both moments of Adam


@dataclass(frozen=True)
class Deliver(Stage, Planned):
    """Train the best designs of a search to the end, test them once, measure them, and write them as models.

    They are trained for at most `steps` and keep the weights that score best on validation; 0 delivers sub-networks of
    shared weights as they are. With `targets`, limits such as `macs<=1e8` by name, the best design within each is
    delivered; a space that is drawn up for targets brings its own. A `teacher` is a stage whose model they learn from.
    """

    NAME: ClassVar[str] = "deliver"
    PANELS: ClassVar[tuple[str, ...]] = ("targets",)
    CONCURRENT: ClassVar[bool] = True

    search: Search = option(about="the search whose designs are delivered")
    keep: int = option(1, "number of models: the best, or those of the Pareto front", least=1)
    targets: Mapping[str, str] = option({}, "limits by name; for each the best design within it is delivered")
    steps: int | None = option(None, "maximum training steps; null: three times those of a trial, or an epoch", least=0)
    epochs: float | None = option(None, "maximum epochs of training, in place of steps", least=0)
    weights: Literal["fresh", "shared"] | None = option(None, "initial weights; null: as the evaluator leaves them")
    teacher: Stage | None = option(None, "the stage whose model teaches the delivered ones")
    labels: float = option(0.1, "weight of the labels next to the teacher", least=0, most=1)
    temperature: float = option(2.0, "temperature of the teacher's answers", least=0.01)
    baseline: bool = option(True, "also train a plain design of at least the same size", extent=True)

    def __post_init__(self) -> None:
        for name in self.targets:
            folder_name("a target", name)  # and so is the folder of its model

    def resolved(self, run: StageRun) -> "Deliver":
        from formwright.train.hyperparameters import usual_last_steps

        evaluator, training, task = self.search.evaluator, self.search.training, self.search.task
        found = self if self.weights or evaluator is None else replace(self, weights=evaluator.DELIVERS)
        if found.epochs is not None:
            return replace(found, steps=found._epoch_steps(run), epochs=None)
        if found.steps is None and task is not None and training.steps is not None:
            rows = len(run.task(task).search_view().train)
            found = replace(found, steps=usual_last_steps(3 * training.steps, rows, training.batch))
        return found

    def _epoch_steps(self, run: StageRun) -> int:
        if not self.epochs:
            return 0
        counted = getattr(self.teacher, "steps_of", None)  # a teacher's batches are counted as it reads them
        if counted is not None:
            return int(counted(self.epochs, run))
        assert self.search.task is not None
        rows = len(run.task(self.search.task).search_view().train)
        return max(1, round(self.epochs * rows / self.search.training.batch))

    def within_targets(self, run: StageRun) -> "Deliver":
        """Give the stage with the targets that the space was drawn up for, where it has none of its own."""
        drawn = run.artifact(self.search.space) if isinstance(self.search.space, Stage) else None
        limits = getattr(drawn, "limits", {})
        return self if self.targets or not limits else replace(self, targets=limits, keep=len(limits))

    # --- the plan of time --------------------------------------------------------------------------------------------

    def amounts(self, run: StageRun) -> dict[str, WorkAmount] | None:
        if self.search.amounts(run) is None:
            return None
        steps = self.steps or 0
        return {"steps": WorkAmount(steps, 1, steps, "fine-tuning steps of each model")} if steps else {}

    def speeds(self, run: StageRun) -> dict[str, float]:
        return self.search.speeds(run)

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        trained = amounts.get("steps", 0) * speeds["step"]
        each = speeds[SLOWED] * WRITING + LOOKS * speeds["validation"] + trained
        return speeds[SLOWED] * START + self._models * each

    @property
    def _models(self) -> int:
        return len(self.targets or getattr(self.search.space, "targets", ())) or self.keep

    def forecast(self, run: StageRun) -> Forecast | None:
        """Estimate the trainings of all models, and their folders and last weights on disk."""
        cards, times = self.search.typical_cards(run), self.search.typical_times(run)
        if times is None or self.search.evaluator is None:
            return None
        models = self._models + bool(self.baseline and self.steps)
        steps = self.search.evaluator.trial_steps(self.steps or 0) if self.weights == "fresh" else self.steps or 0
        each = times.slowed * WRITING + LOOKS * times.judging + steps * times.alone
        turns = -(-models // min(run.options.workers, os.cpu_count() or 1))
        disk = _COPIES * models * BYTES * params(cards[len(cards) // 2])
        return Forecast(times.slowed * START + turns * each, disk)

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        trained = f"trained for {amounts['steps']:,} steps, " if amounts.get("steps") else ""
        return f"{self._models} models {trained}written, measured and tested"

    def planned(self, amounts: Mapping[str, int], run: StageRun) -> "Deliver":
        return self if amounts.get("steps", self.steps) == self.steps else replace(self, steps=amounts["steps"])

    # --- the stage ---------------------------------------------------------------------------------------------------

    def check(self, run: StageRun) -> None:
        evaluator = self.search.evaluator
        if evaluator is None or self.search.task is None:
            raise IllegalInput("only designs that are trained for a task can be delivered: give the search a task")
        if self.weights == "shared" and not evaluator.shares_weights():
            raise IllegalInput(f"delivering shared weights needs trials that leave them, and {evaluator.NAME} does not")
        if self.steps == 0 and self.weights != "shared":
            raise IllegalInput("only sub-networks of shared weights can be delivered without training (steps=0)")

    def teaching(self, run: StageRun) -> "Teaching | None":
        """Give the teacher of the last trainings, if there is one."""
        from formwright.train.distil import Mix, Teaching

        if self.teacher is None or not self.steps:
            return None
        mix = Mix(labels=self.labels, scores=1 - self.labels, temperature=self.temperature)
        found = run.artifact(self.teacher)
        return Teaching(getattr(found, "model", found), mix)

    def make(self, run: StageRun) -> None:
        from formwright.pipeline.chosen_designs import unmet_targets
        from formwright.pipeline.compare import note_comparisons
        from formwright.pipeline.measure_models import measure_delivered

        with self.search.place(run.run.stage(self.search)).open(run=run.run) as opened:
            for stage in run.run.pipeline:
                if (note := getattr(stage, "note", None)) is not None:  # what the page shows next to the search
                    note(run.run.stage(stage), opened)
            try:
                models = _deliver(opened.deliver, run, opened)
            except KeyboardInterrupt:
                raise Interrupted("the delivery") from None
            models = measure_delivered(opened, models)
            if opened.deliver.targets:
                for name, why in unmet_targets(opened.study(), opened.deliver.targets).items():
                    run.tell(f"nothing is delivered for {name}: {why}")
            note_comparisons(opened, models)
            for observer in run.run.observers:
                for model in models:
                    observer.model(model)

    def models(self, run: StageRun) -> "list[Delivered]":
        """List the delivered models."""
        found: list[Delivered] = run.artifact(self)
        return found

    def load(self, run: StageRun) -> "list[Delivered]":
        with self.search.place(run.run.stage(self.search)).open(run=run.run) as opened:
            return _delivered_now(opened)


def _delivered_now(opened: "Opened") -> "list[Delivered]":
    """List what the study delivers now, the best first or by target; leave out what it delivered before."""
    from formwright.pipeline.delivered import measured_models, undelivered
    from formwright.search.scores import best_of

    models = list(measured_models(opened).values())
    if opened.deliver.targets:  # those of a teacher first, and then by target
        names = list(opened.deliver.targets)
        return sorted(models, key=lambda model: names.index(model.name) if model.name in names else -1)
    failed = undelivered(opened.log)
    best = [trial.request.card.digest for trial in best_of(opened.history(), opened.search.all_objectives)]
    wanted = [digest for digest in best if digest not in failed][: opened.deliver.keep]
    kept = [model for model in models if model.digest in wanted or model.role not in ("best", "front")]
    return sorted(kept, key=lambda model: wanted.index(model.digest) if model.digest in wanted else len(wanted))


def _deliver(stage: Deliver, run: StageRun, opened: "Opened") -> "list[Delivered]":
    from formwright.pipeline.chosen_designs import candidates, within_targets
    from formwright.pipeline.delivery import deliver_all, made_before
    from formwright.pipeline.run_folder import FINAL

    study = opened.study()
    chosen = (
        within_targets(study, stage.targets)
        if stage.targets
        # without training there is no baseline: it is no sub-network of the shared weights
        else candidates(study, stage.keep, baseline=stage.baseline and bool(stage.steps))
    )
    missing = [candidate.name for candidate in chosen if made_before(opened, candidate) is None]
    steps = stage.steps or 0
    if missing:
        names = ", ".join(missing)
        run.tell(f"training {names} for at most {steps:,} steps" if steps else f"writing {names}")
    # what is measured on this machine is measured alone
    workers = 1 if stage.weights == "shared" and stage.targets else run.options.workers
    final: Path = opened.place.folder / FINAL
    with run.run.display.trainings(final, steps):
        return deliver_all(opened, chosen, workers, run.interruption)
