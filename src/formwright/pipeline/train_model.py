"""The stage that trains one model on a task: a design from scratch, or a pretrained model that is fine-tuned."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.codec import canonical
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.files import read_json, write_file, write_json
from formwright.core.options import PartWriter, Stage, option
from formwright.cost import params
from formwright.pipeline.conclusion import Summary, score_line, training_summary
from formwright.pipeline.designs import absolute
from formwright.pipeline.forecast import BYTES, Forecast
from formwright.pipeline.model_training import Distillation, Judging, ModelTraining, WordPretraining
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import StageRun
from formwright.pipeline.run_folder import FINAL
from formwright.pipeline.task_choice import TaskChoice

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.evaluate.final import Tested
    from formwright.pipeline.delivered import Delivered
    from formwright.pipeline.start_model import StartModel
    from formwright.tasks.bootstrap import Evidence
    from formwright.train.fit import Trained, Training
    from formwright.train.prepare import Prepared


MODEL = "model"  # the folder of the model in that of the run
_RESULT, _LEARNED, _WEIGHTS = "result.json", "learned.json", "weights.safetensors"


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training: the folder of the model, and the facts that `formwright train --json` prints."""

    folder: Path
    facts: dict[str, Any]


@dataclass(frozen=True)
class TrainModel(Stage):
    """Train a model on a task, and write it as a folder that loads.

    `source` is a published card, the JSON file of a card, a card as JSON, or the folder of a pretrained model. The
    folder of the stage keeps the trained weights, so that the model may be evaluated again, with other beams or on the
    test rows.
    """

    NAME = "train"
    PANELS = ("training",)

    source: str | Mapping[str, Any] = option(about="a published card, a card's JSON file, or a model's folder")
    task: TaskChoice = option(about="the task to train on")
    training: ModelTraining = option(ModelTraining(), "how the model is trained")
    judging: Judging = option(Judging(), "how the model is evaluated")
    pretraining: WordPretraining | None = option(None, "pretrain first with masked words")
    distillation: Distillation | None = option(None, "learn from a teacher as well")
    seed: int = option(0, "random seed of weights, order of rows and dropout", least=0, most=2**63 - 1)

    # --- what follows from the options -------------------------------------------------------------------------------

    def start(self, run: StageRun) -> "StartModel":
        """Read what is trained; once in a run, because a model may be large."""
        from formwright.pipeline.start_model import read_start

        found: StartModel = run.run.once((run.name, "start"), lambda: read_start(self, run.task(self.task)))
        return found

    def prepared(self, run: StageRun) -> "Prepared":
        """Give the rows of the task as the model reads them."""
        assert self.training.length is not None
        return self.start(run).prepared(self.training.length)

    def plain_training(self, run: StageRun) -> "Training":
        """Make the training without early stopping, which pretraining is done with."""
        made = self.training.make()
        settings = replace(self.start(run).settings, dropout=made.settings.dropout)
        return replace(made, recipe=replace(made.recipe, seed=self.seed), settings=settings)

    def full_training(self, run: StageRun) -> "Training":
        """Make the training, which is judged in between."""
        return self.judging.applied(self.plain_training(run), len(self.prepared(run).validation.examples))

    # --- the stage ---------------------------------------------------------------------------------------------------

    def resolved(self, run: StageRun) -> "TrainModel":
        from formwright.train.device import choose_device

        for name in (self.source, self.task.name, str(run.run.out)):
            try:  # neither the model card nor the files of a tokenizer can hold another name
                str(name).encode()
            except UnicodeEncodeError:
                detail = f"the name {name!r} is not text in UTF-8; give the file or folder another name"
                raise IllegalInput(detail) from None
        found = replace(
            self._absolute(), training=replace(self.training, device=choose_device(self.training.device).type)
        )
        for warning in run.task(found.task).warnings:
            run.tell(f"warning: {warning.message}")
        start = found.start(run)
        if start.replaced:
            run.tell(start.replaced)
        found = found._with_length(run, start)
        pretrained = self.pretraining is not None
        training = found.training.settled(
            found.prepared(run), self.seed, from_scratch=start.from_scratch, pretrained=pretrained
        )
        found = replace(found, training=training)
        rows = len(found.prepared(run).validation.examples)
        return replace(found, judging=self.judging.settled(found.plain_training(run), rows))

    def _absolute(self) -> "TrainModel":
        found = replace(self, task=self.task.absolute())
        if isinstance(self.source, str):
            found = replace(found, source=absolute(self.source))
        if self.pretraining is not None:
            text = TaskChoice(self.pretraining.text).absolute().name
            found = replace(found, pretraining=replace(self.pretraining, text=text))
        if self.distillation is not None:
            teacher = os.path.abspath(self.distillation.teacher)
            found = replace(found, distillation=replace(self.distillation, teacher=teacher))
        return found

    def _with_length(self, run: StageRun, start: "StartModel") -> "TrainModel":
        """Settle the length of a row, and say how many rows it cuts."""
        from formwright.tasks.row_length import PIECES
        from formwright.train.prepare import cut_rows

        asked = self.training.length
        other_text = self.pretraining is not None and self.pretraining.text != "self"
        prepared = start.prepared(asked or start.usual_length(of_pieces=other_text))
        cut = cut_rows(prepared, start.card)
        if cut is not None and (detail := cut.report(is_default=asked is None)):
            run.tell(detail)
        if asked is not None and 0 < prepared.length < asked:  # images have no length
            run.tell(f"rows have at most {prepared.length} tokens, not {asked}: the design reads no more")
        return replace(self, training=replace(self.training, length=prepared.length or asked or PIECES))

    def check(self, run: StageRun) -> None:
        """Refuse a training that could not be done: of a teacher that does not fit, or without test rows."""
        from formwright.evaluate.final import require_test_split
        from formwright.train.judge import with_beams

        start, prepared = self.start(run), self.prepared(run)
        self.full_training(run)
        with_beams(prepared, self.judging.beams)
        if start.teacher is not None:
            start.teacher.refuse_for(start.card, prepared)
        if self.judging.test:
            require_test_split(start.task, run.run.out / FINAL)

    def forecast(self, run: StageRun) -> Forecast:
        """Estimate the steps of training and pretraining, and the weights on disk: of the stage, and of the model."""
        from formwright.pipeline.model_times import measured_times

        start, prepared, training = self.start(run), self.prepared(run), self.full_training(run)
        times = measured_times(lambda how: start.model(prepared, how, None), prepared, training)
        steps = training.recipe.steps + (self.pretraining.steps if self.pretraining is not None else 0)
        looks = training.recipe.steps // training.judge_every if training.judge_every else 0
        seconds = steps * times.step + (1 + looks) * times.judging
        return Forecast(seconds, 2 * BYTES * params(start.card))

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return self.start(run).digests()

    def reaches(self, run: StageRun) -> bool:
        known = read_json(run.folder / _RESULT)
        tested = known["test"] is not None or not self.judging.test
        return known["beams"] == self.judging.beams and tested and (run.run.out / MODEL / "config.json").is_file()

    def make(self, run: StageRun) -> None:
        from formwright.evaluate.evaluation_file import evidence_of
        from formwright.pipeline.task_models import write_task_model
        from formwright.train.device import threads
        from formwright.train.judge import judged, with_beams

        trained = self._learned(run) or self._trained(run)
        prepared = with_beams(self.prepared(run), self.judging.beams)
        if not trained.metrics or self.judging.beams > 1:
            with threads(self.training.threads):
                found = judged(trained.model, prepared, prepared.validation)
            trained = replace(trained, metrics=found.metrics, tables=found.tables)
        scores = {"validation": trained.metrics}
        evidence = {"validation": evidence_of(trained.metrics, trained.tables, prepared, prepared.validation)}
        if self.judging.test:
            tested = self._tested(run, trained, prepared)
            scores["test"], evidence["test"] = tested.metrics, tested.evidence
        lineage = {"trained from": self.start(run).name}
        write_task_model(trained.model, prepared, run.run.out / MODEL, lineage, scores, evidence)
        write_json(run.folder / _RESULT, self._facts(run, trained, prepared, scores, evidence))

    def _facts(
        self,
        run: StageRun,
        trained: "Trained",
        prepared: "Prepared",
        scores: Mapping[str, Mapping[str, float]],
        evidence: "Mapping[str, Evidence]",
    ) -> dict[str, Any]:
        from formwright.train.prepare import cut_rows
        from formwright.train.streams import Shuffled

        start, recipe, split = self.start(run), self.full_training(run).recipe, list(scores)[-1]
        metric, cut = start.task.metric, cut_rows(prepared, start.card)
        return {
            "name": start.name,
            "digest": start.card.digest,
            "params": params(start.card),
            "card": start.card.to_json(),
            "task": start.task.name,
            "steps": len(trained.losses),
            "best_step": trained.best_step,
            "losses": trained.losses,
            "metrics": dict(trained.metrics),
            "test": dict(scores["test"]) if "test" in scores else None,
            "evidence": {name: asdict(known) for name, known in evidence.items()},
            "conclusion": [f"{start.name}: {score_line(metric, split, scores[split][metric], evidence[split])}"],
            "beams": prepared.beams,
            "padding": Shuffled(prepared.train.examples.lengths, recipe.batch, recipe.seed).padding,
            "length": prepared.length,
            "cut": 0.0 if cut is None else cut.share,
            "recipe": asdict(recipe),
            "seconds": trained.seconds,
        }

    def summary(self, run: StageRun) -> Summary:
        return training_summary(run.artifact(self).facts)

    def models(self, run: StageRun) -> "list[Delivered]":
        """Give the model as those of a search are."""
        from formwright.pipeline.delivered import Delivered

        found: TrainedModel = run.artifact(self)
        own = {name: found.facts[name] for name in ("name", "digest", "params", "steps", "test", "best_step")}
        scores = found.facts["metrics"]
        return [Delivered(role="best", path=str(found.folder), validation=scores, trial=None, **own)]

    def load(self, run: StageRun) -> TrainedModel:
        folder = run.run.out / MODEL
        return TrainedModel(folder, read_json(run.folder / _RESULT) | {"model": str(folder)})

    def page_facts(self, run: StageRun) -> dict[str, Any] | None:
        return self.load(run).facts if (run.folder / _RESULT).is_file() else None

    # --- the work ----------------------------------------------------------------------------------------------------

    def _trained(self, run: StageRun) -> "Trained":
        from formwright.evaluate.training import weights_of
        from formwright.train.distil import Mix, Teaching
        from formwright.train.fit import fit

        start, prepared, training = self.start(run), self.prepared(run), self.full_training(run)
        model, teaching = start.model(prepared, training, self._pretrained(run)), None
        if start.teacher is not None and self.distillation is not None:
            labels = self.distillation.labels
            teaching = Teaching(start.teacher.model(), Mix(labels, 1 - labels, self.distillation.hidden))
        with run.training("training", training.recipe.steps, run.checkpoints / "training") as conducted:
            trained = fit(model, prepared, training, conducted, teaching)
        weights = weights_of(trained.model)
        names = ("losses", "seconds", "best_step")
        facts = {name: getattr(trained, name) for name in names} | {"weights": hashlib.sha256(weights).hexdigest()}
        write_file(run.folder / _WEIGHTS, weights)
        write_json(run.folder / _LEARNED, facts)  # last: it says that the weights are there
        return trained

    def _learned(self, run: StageRun) -> "Trained | None":
        """Read what was learned before, which is yet to be judged; None where that is not there, or damaged."""
        from safetensors.torch import load

        from formwright.train.device import choose_device
        from formwright.train.fit import Trained

        try:
            facts = read_json(run.folder / _LEARNED)
            weights = (run.folder / _WEIGHTS).read_bytes()
        except (OSError, IllegalInput):
            return None
        if hashlib.sha256(weights).hexdigest() != facts["weights"]:
            return None
        model, tensors = self.start(run).model(self.prepared(run), self.full_training(run)), load(weights)
        for name, parameter in model.named_parameters():  # shared ones have one name
            parameter.data.copy_(tensors[name])
        model.to(choose_device(self.training.device))
        return Trained(model.eval(), facts["losses"], {}, facts["seconds"], best_step=facts["best_step"])

    def _pretrained(self, run: StageRun) -> Any:
        from formwright.tasks.tokeniser import Tokeniser
        from formwright.train.pretrain import pretrain

        if self.pretraining is None:
            return None
        start, training = self.start(run), self.plain_training(run)
        training = replace(training, recipe=replace(training.recipe, steps=self.pretraining.steps))
        assert start.text is not None
        assert isinstance(start.tokeniser, Tokeniser)
        again = self.pretraining.next_sentence
        with run.training("pretraining", self.pretraining.steps, run.checkpoints / "pretraining") as conducted:
            found, _ = pretrain(start.card, start.text, start.tokeniser, training, conducted, next_sentence=again)
        run.stop_if_asked("the end of pretraining")
        return found

    def _tested(self, run: StageRun, trained: "Trained", prepared: "Prepared") -> "Tested":
        """Evaluate on the test rows, under a name that identifies everything that the model depends on."""
        from formwright.evaluate.final import test_once
        from formwright.train.device import threads

        decides = {"options": PartWriter(extents=False).record(self), "contents": dict(self.contents(run))}
        digest, beams = hashlib.sha256(canonical(decides).encode()).hexdigest(), self.judging.beams
        name = f"{self.start(run).name}-{digest[:16]}" + (f"-{beams}-beams" if beams > 1 else "")
        with threads(self.training.threads):
            return test_once(trained.model, prepared, name, run.run.out / FINAL)


def train_pipeline(
    source: "str | Card",
    task: "str | TaskChoice",
    *,
    pretraining: WordPretraining | None = None,
    distillation: Distillation | None = None,
    seed: int = 0,
    **options: Any,
) -> Pipeline:
    """Compose the training of one model on a task.

    `source` is a card, or a name or path as `TrainModel` takes it; `task` a name, a file or a choice. The other options
    are those of `ModelTraining` and `Judging`, and, for a task that is named, those of `TaskChoice`.
    """
    groups: list[type[Any]] = [ModelTraining, Judging, *([TaskChoice] if isinstance(task, str) else [])]
    found: dict[type[Any], dict[str, Any]] = {group: {} for group in groups}
    known = {one.name: group for group in groups for one in fields(group)}
    for name, value in options.items():
        if name not in known:
            raise UnknownName("option of a training", name, list(known))
        found[known[name]][name] = value
    choice = task if isinstance(task, TaskChoice) else TaskChoice(**{"name": task} | found[TaskChoice])
    given = source if isinstance(source, str) else source.to_json()
    training, judging = ModelTraining(**found[ModelTraining]), Judging(**found[Judging])
    return Pipeline(TrainModel(given, choice, training, judging, pretraining, distillation, seed))
