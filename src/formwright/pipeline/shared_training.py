"""How the stage `super-network` trains its weights: where they start, its teacher's answers, and the loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from formwright.core.errors import IllegalInput
from formwright.nn.inherit import Reading
from formwright.nn.task_model import TaskModel
from formwright.pipeline.pacing import schedule_share, train_paced
from formwright.pipeline.run import StageRun
from formwright.pipeline.shared_start import StartWeights, fresh_weights
from formwright.pipeline.train_shared import TrainShared
from formwright.supernet.hull import Hull, find_hull, reads_all, regrouped_heads
from formwright.supernet.lessons import LessonContext
from formwright.supernet.library import LibraryWeights, extracted
from formwright.supernet.network import StepTrackingStream, SuperNetwork, copy_of_teacher
from formwright.train.device import choose_device, threads
from formwright.train.distil import cached_teacher
from formwright.train.fit import Training, task_stream
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch
from formwright.train.updates import JoinedLosses

_CLOSE = 1e-6  # of a step: shares are not exact
_HELD_OUT = 128  # validation rows at most, by which designs are compared while they are trained
_ANSWERS = "answers.safetensors"  # what the teacher says to every training row, next to the checkpoints


def trained_network(stage: TrainShared, run: StageRun, prepared: Prepared) -> SuperNetwork:
    """Train the super-network of a stage, from where an earlier run stopped, if one did."""
    steps = run.first_steps(stage.steps_of(prepared))
    training = stage.training_for(steps)
    network = _network(stage, run, prepared, training)
    network.rule_follows_plan = stage.rule.FOLLOWS_SHARE
    share = stage.lesson.switch_share
    switch = None if share is None else round(share * steps)
    tracked = StepTrackingStream(task_stream(prepared, training.recipe), network, training.recipe.accumulate)
    stream = PlannedStepStream(tracked, partial(schedule_share, run), steps, switch)
    held = _held_out(prepared) if stage.lesson.NEEDS_HELD_OUT else None
    context = LessonContext(network, find_hull(stage.found_space(run)), steps, held)
    loss = JoinedLosses(stage.lesson.bind(prepared.task.kind, context), stage.update)
    network.to(choose_device(training.device))  # with what the lesson added
    with threads(training.threads):
        train_paced(run, run.name, network, stream, loss, lambda many: stage.training_for(many).recipe, steps)
    return network


@dataclass(frozen=True)
class PlannedStepStream:
    """Batches that set the step of a network, and the equivalent step of the original plan.

    Rules and lessons are bound to `steps`, the number of steps in the original plan. `share` gives the share of the
    schedule that has passed before a step, None before the plan changes. The stream maps each step to the equivalent
    step of the original plan, at which the same share had passed; step `switch` occurs exactly once. So every phase
    keeps its share of the steps, however many these become.
    """

    stream: StepTrackingStream
    share: Callable[[int], float | None]
    steps: int
    switch: int | None = None

    def batch(self, step: int) -> Batch:
        """Give a batch, and set both steps of the network."""
        batch, network = self.stream.batch(step), self.stream.network
        network.planned = self.planned_step(network.step)
        return batch

    def planned_step(self, step: int) -> int:
        """Give the step of the original plan that a step is equivalent to; itself before the plan changes."""
        now, before = self._reached(step), self._reached(step - 1)
        if self.switch is None or not before <= self.switch <= now:
            return now
        return self.switch if before < self.switch else max(now, self.switch + 1)

    def _reached(self, step: int) -> int:
        share = None if step < 0 else self.share(step)
        return step if share is None else math.floor(share * self.steps + _CLOSE)


def _held_out(prepared: Prepared) -> Batch:
    """Give the validation rows by which designs are compared while they are trained: always the same."""
    held, rows = replace(prepared, train=prepared.validation), len(prepared.validation.examples)
    batches = math.ceil(rows / _HELD_OUT)  # of about the same size: the first of them might be what is left over
    return task_stream(held, Hyperparameters(1, math.ceil(rows / batches))).batch(0)


def _network(stage: TrainShared, run: StageRun, prepared: Prepared, training: Training) -> SuperNetwork:
    hull, known, teacher = find_hull(stage.found_space(run)), None, None
    if stage.teacher is not None:
        known = run.artifact(stage.teacher)
        teacher = _teacher_answers(stage, run, known.model, prepared, training) if stage.lesson.NEEDS_TEACHER else None
    start, hull = _start(stage, run, hull, known, prepared, training)
    reading = stage.reading(hull.space)
    return SuperNetwork(start, stage.rule.bind(hull, training.recipe.steps, stage.seed), teacher, reading)


def _start(
    stage: TrainShared, run: StageRun, hull: Hull, known: Any, prepared: Prepared, training: Training
) -> tuple[TaskModel | LibraryWeights, Hull]:
    """Give the weights to begin with: a teacher's, where it holds all designs, or fresh ones with what fits."""
    if known is not None and reads_all(hull.space, known.model.transformer.card):
        scores = None if stage.order is None else run.artifact(stage.order)
        importance = getattr(scores, "order", scores)  # a stage may leave other scores as well
        whole = _has_whole_embedding(hull, known.model)
        _warn_regrouped(hull, known.model, run)
        copied = copy_of_teacher(known.model, importance, whole_embedding=whole)
        return _largest_of(copied, hull, stage.reading(hull.space)), hull
    if stage.order is not None:
        raise IllegalInput(
            f"the teacher does not hold the weights of all designs of space {hull.space.name!r}, so its order "
            "does not apply to them: leave out the stage that scores its parts, or choose another teacher or space"
        )
    if known is not None and stage.channels == "cyclic":
        raise IllegalInput(
            f"the teacher does not hold the weights of all designs of space {hull.space.name!r}, and cyclic channels "
            "of other sizes begin elsewhere: choose channels=first, or another teacher or space"
        )
    begin = stage.start_weights(run) if known is None else StartWeights.of("the teacher", known, prepared.task)
    start, hull = fresh_weights(hull, prepared, training, begin, run.tell, needed=stage.start is not None)
    if isinstance(start, TaskModel) and begin is not None:
        _warn_regrouped(hull, start, run)
    return start, hull


def _largest_of(copied: TaskModel, hull: Hull, reading: Reading) -> TaskModel:
    """Cut the largest design out of a model that has more than it: what no design reads would never be trained."""
    if not hull.whole or hull.largest == copied.transformer.card:
        return copied
    cut = extracted(copied, hull.largest, reading)
    trained = {name: weight.requires_grad for name, weight in copied.named_parameters()}
    for name, weight in cut.named_parameters():
        weight.requires_grad_(trained.get(name, True))
    return cut


def _warn_regrouped(hull: Hull, start: TaskModel, run: StageRun) -> None:
    if anew := regrouped_heads(hull.space, start.transformer.card):
        run.tell(
            f"warning: designs of space {hull.space.name!r} group the channels of the trained weights into other heads "
            f"({anew}): they start with these channels, but not with what the heads have learned, unless the weights "
            "are those of a super-network that was trained in these groups too"
        )


def _teacher_answers(
    stage: TrainShared, run: StageRun, known: TaskModel, prepared: Prepared, training: Training
) -> nn.Module:
    """Give the teacher, with its answers kept in memory where rows are shown more than once.

    That is decided by the steps with which the training began, so that a run that is resumed has the same answers.
    """
    rows = len(prepared.train.examples)
    once = training.recipe.steps * training.recipe.batch <= rows
    if once or not stage.keeps_answers(prepared):
        return known
    with threads(training.threads), run.progress("answers of the teacher", rows) as tell:
        moved = known.to(choose_device(training.device))
        return cached_teacher(moved, prepared, run.checkpoints / _ANSWERS, lambda number: tell(number - 1, None))


def _has_whole_embedding(hull: Hull, known: TaskModel) -> bool:
    """Tell whether all designs are encoders with the teacher's whole embedding: training it takes a fifth of a step."""
    cards = (known.transformer.card, hull.largest, hull.smallest)
    return len({card.encoder and card.encoder.embedding for card in cards}) == 1 and all(
        card.decoder is None for card in cards
    )
