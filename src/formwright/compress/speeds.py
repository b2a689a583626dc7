"""How fast this machine trains and judges a model: a few steps of the real thing, timed."""

import time
from dataclasses import replace

import torch
from torch import nn

from formwright.compress.begin import Begun
from formwright.compress.plan import Speeds
from formwright.train.batch import Batch
from formwright.train.device import choose_device, threads
from formwright.train.fit import Training, task_stream
from formwright.train.imported import task_model
from formwright.train.judge import batch_of
from formwright.train.loop import begin, go_on, scores_of
from formwright.train.losses import loss_of
from formwright.train.streams import Typical, in_order

_STEPS = 3  # timed, after one that is not
_ROWS = 64  # that are judged at once
_WRITING = 12.0  # seconds: measuring, exporting and writing a model hardly depend on its size
_START = 10.0  # seconds until processes have imported what they need and have read their model


def measured_speeds(begun: Begun, training: Training, smallest: float) -> Speeds:
    """Time a few steps of the model, and add up what the stages are made of.

    `smallest` is the cost of the smallest sub-network as a share of the model's. A step of the super-network is one of
    the model, one of the smallest, and one of a random one between them. What processes of the study do is timed as
    they do it: with one thread. There the time that passes is the time that is worked, unless the machine is busy.
    """
    step, answer = _step_and_answer(begun, training)
    alone, asked = (step, answer) if training.threads == 1 else _step_and_answer(begun, replace(training, threads=1))
    (judging, worked), middle = _judging_seconds(begun, training), (1 + smallest) / 2
    slowed = max(1.0, judging / worked) if worked else 1.0
    return Speeds(
        teacher=step,
        judging=judging,
        network=step * (1 + middle + smallest),
        answer=answer,
        answers=answer * len(begun.prepared.train.examples) / training.recipe.batch,
        validation=middle * judging,
        writing=slowed * _WRITING,
        alone=alone * middle + asked,
        start=slowed * _START,
        rows=len(begun.prepared.validation.examples),
        slowed=slowed,
    )


def _step_and_answer(begun: Begun, training: Training) -> tuple[float, float]:
    """Time a step of training, and what the model says to a batch."""
    training = replace(training, recipe=replace(training.recipe, steps=_STEPS + 1))
    model = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
    stream, loss = Typical(task_stream(begun.prepared, training.recipe)), loss_of(begun.prepared.task.kind)
    with threads(training.threads):
        state = begin(model, training.recipe)
        go_on(state, stream, loss, until=1)
        before = state.seconds
        go_on(state, stream, loss)
        step = (state.seconds - before) / _STEPS
        return step, _answer_seconds(model, [stream.batch(number) for number in range(_STEPS)])[0]


def _judging_seconds(begun: Begun, training: Training) -> tuple[float, float]:
    """Time a validation as workers do it: with one thread, by batches from the shortest rows to the longest.

    Give the seconds that pass, and those of them that the processor worked for us.
    """
    prepared = begun.prepared
    model = task_model(begun.imported, prepared, training).to(choose_device(training.device))
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
