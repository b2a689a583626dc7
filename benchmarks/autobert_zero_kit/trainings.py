"""Trainings outside a search: long ones that say what a design is worth, and pretraining with and without sharing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from autobert_zero_kit.runs import Job, Row
from autobert_zero_kit.searches import RANDOM_SHARED, opened
from autobert_zero_kit.setting import Nano, Setting, nano_space
from autobert_zero_kit.uniformity import uniformity
from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import History, Request
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final
from formwright.nn.build import build
from formwright.nn.task_model import TaskModel
from formwright.study.study import StudySetup
from formwright.supernet.branches import HEAD, taken, to_train
from formwright.train.fit import Run, Training
from formwright.train.loop import scores_of
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared, prepare
from formwright.train.pretrain import plain_text, pretrain
from formwright.train.streams import Batch, Masking, masked


def long_trained(setting: Setting, folder: Path, job: Job) -> Row:
    """Pretrain and fine-tune a design from fresh weights, and test it."""
    nano, card = setting.nano, job.design
    pretrained, alike = nano.pretraining(nano.long).start(), Row()

    def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
        model = pretrained(card, prepared, training)
        alike.update(uniformity(model.transformer, prepared, nano.rows))
        return model

    with TemporaryDirectory() as place:  # a training of seconds need not be resumed
        found = Final(nano.trainer(nano.long), start).verdict(Request(card), Context(job.seed, Path(place)))
    metric = nano.seen.metric
    assert found.test is not None
    return {"validation": found.validation[metric], "test": found.test[metric], "params": params(card), **alike}


@dataclass(frozen=True)
class Judge:
    """Give the loss on hidden words of validation rows, the same ones whenever it is asked for."""

    batches: Sequence[Batch]

    @classmethod
    def of(cls, prepared: Prepared, rows: int) -> Judge:
        encoded, masking = prepared.validation.examples, Masking.of(prepared.text_tokeniser)
        parts = np.array_split(np.arange(min(rows, len(encoded))), max(1, rows // 64))
        return cls([masked(encoded, part, masking, derive(0, "hidden", int(part[0]))) for part in parts])  # type: ignore[arg-type]

    def __call__(self, model: TaskModel) -> float:
        model.eval()
        with torch.inference_mode():
            losses = [float(loss_of("masked-lm")(scores_of(model, batch), batch)) for batch in self.batches]
        return float(np.average(losses, weights=[len(batch.labels) for batch in self.batches]))


def compared(setting: Setting, folder: Path, job: Job) -> Row:
    """Pretrain a design that no search has seen, from fresh weights and from those that random designs share."""
    nano, space = setting.nano, nano_space()
    card = space.card(space.sample(derive(job.seed, "curve", job.name), "gene"))
    training = nano.training(nano.curve, decay="none")  # so that the loss after n steps does not depend on the end
    fresh = build(card, training.settings, HEAD, job.seed, training.spread)
    assert isinstance(fresh, TaskModel)
    with opened(setting, folder, RANDOM_SHARED, job.seed) as study:
        store = nano.evaluator(shared=True).store(Context(job.seed, study.folder, whole_history(study, nano.trials)))
    ready = to_train(card, taken(store, card), HEAD, training.settings)
    losses = {"scratch": _losses(nano, card, fresh, job.seed), "inherited": _losses(nano, card, ready, job.seed)}
    return {"marks": list(range(0, nano.curve + 1, nano.look)), **losses, "designs": store.version}


def whole_history(study: StudySetup, trials: int) -> History:
    """Give the trials of a finished search; refuse one whose files are gone, which would pass for fresh weights."""
    history = study.history()
    if len(history.trials) < trials or history.pending:
        raise IllegalInput(
            f"the results say that the search {study.log.name!r} is done, but {study.folder} has {len(history.trials)} "
            f"of its {trials} trials: put that folder back, or delete the line of this search from the results"
        )
    return history


def _losses(nano: Nano, card: Card, model: TaskModel, seed: int) -> list[float]:
    """Pretrain a model in place; give its losses before the first step and every few steps."""
    prepared = prepare(nano.seen, card, nano.training(1).length)
    judge = Judge.of(prepared, nano.rows)
    found = [judge(model)]

    def look(step: int, _: float) -> None:
        if (step + 1) % nano.look == 0:
            found.append(judge(model))

    training = nano.training(nano.curve, decay="none")
    # other words than the trials of the search have hidden, and the same with and without sharing
    words = int(derive(seed, "curve words").integers(1 << 62))
    training = replace(training, recipe=replace(training.recipe, seed=words))
    pretrain(
        card, plain_text(prepared.train.rows), prepared.text_tokeniser, training, Run(after_step=look), model=model
    )
    return found
