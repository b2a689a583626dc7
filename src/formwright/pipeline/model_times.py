"""How fast this machine trains and judges a model: a few steps of the real thing, timed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from formwright.nn.task_model import TaskModel
from formwright.train.device import choose_device, threads
from formwright.train.fit import Training, task_stream
from formwright.train.judge import batch_of
from formwright.train.loop import begin, go_on, scores_of
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch, Typical, in_order

_STEPS = 3  # timed, after one that is not
_ROWS = 64  # that are judged at once


@dataclass(frozen=True)
class ModelTimes:
    """Seconds of a model: a training step, its answer to a batch, and judging all validation rows.

    `alone` and `asked` are a step and an answer in a process of one thread, where workers judge and train. All are
    `slowed` by this factor by what else the machine does.
    """

    step: float
    answer: float
    alone: float
    asked: float
    judging: float
    slowed: float = 1.0


def measured_times(make: Callable[[Training], TaskModel], prepared: Prepared, training: Training) -> ModelTimes:
    """Time a few steps of a model on a task; `make` makes it for a training.

    What workers do is timed as they do it: with one thread. There the time that passes is the time that is worked,
    unless the machine is busy.
    """
    step, answer = _step_and_answer(make, prepared, training)
    alone, asked = step, answer
    if training.threads != 1:
        alone, asked = _step_and_answer(make, prepared, replace(training, threads=1))
    judging, worked = _judging_seconds(make, prepared, training)
    return ModelTimes(step, answer, alone, asked, judging, max(1.0, judging / worked) if worked else 1.0)


def _step_and_answer(
    make: Callable[[Training], TaskModel], prepared: Prepared, training: Training
) -> tuple[float, float]:
    """Time a step of training, and what the model says to a batch."""
    training = replace(training, recipe=replace(training.recipe, steps=_STEPS + 1))
    model = make(training).to(choose_device(training.device))
    stream, loss = Typical(task_stream(prepared, training.recipe)), loss_of(prepared.task.kind)
    with threads(training.threads):
        state = begin(model, training.recipe)
        go_on(state, stream, loss, until=1)
        before = state.seconds
        go_on(state, stream, loss)
        step = (state.seconds - before) / _STEPS
        return step, _answer_seconds(model, [stream.batch(number) for number in range(_STEPS)])[0]


def _judging_seconds(
    make: Callable[[Training], TaskModel], prepared: Prepared, training: Training
) -> tuple[float, float]:
    """Time a validation as workers do it: with one thread, by batches from the shortest rows to the longest.

    Give the seconds that pass, and those of them that the processor worked for us.
    """
    model = make(training).to(choose_device(training.device))
    batches = list(in_order(prepared.validation.examples, _ROWS))
    places = sorted({int(share * len(batches)) for share in (1 / 6, 1 / 2, 5 / 6)})
    some = [batch_of(prepared, prepared.validation, batches[place]) for place in places]
    with threads(1):
        passed, worked = _answer_seconds(model, some)
        return passed * len(batches), worked * len(batches)


def _answer_seconds(model: nn.Module, batches: list[Batch]) -> tuple[float, float]:
    """Give the seconds that pass and those that are worked: the mean of some batches, after one that is not timed."""
    device = next(model.parameters()).device
    model.eval()
    there = [batch.to(device) for batch in batches]
    with torch.inference_mode():
        scores_of(model, there[0])
        began, before = time.perf_counter(), time.process_time()
        for batch in there:
            scores_of(model, batch)
        passed, worked = time.perf_counter() - began, time.process_time() - before
        return passed / len(there), worked / len(there)
