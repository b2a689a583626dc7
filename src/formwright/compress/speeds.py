"""How fast this machine trains and judges a model: a few steps of the real thing, timed."""

import time
from dataclasses import replace

import torch

from formwright.compress.begin import Begun
from formwright.compress.plan import Speeds
from formwright.train.device import choose_device, threads
from formwright.train.fit import Training, task_stream
from formwright.train.imported import task_model
from formwright.train.loop import begin, go_on, scores_of
from formwright.train.losses import loss_of

_STEPS = 3  # timed, after one that is not
_DELIVERY = 20.0  # seconds: measuring, exporting and writing a model hardly depend on its size


def measured_speeds(begun: Begun, training: Training, smallest: float) -> Speeds:
    """Time a few steps of the model, and add up what the stages are made of.

    `smallest` is the cost of the smallest sub-network as a share of the model's. A step of the super-network is one of
    the model, one of the smallest, one of a random one between them, and at most one answer of the teacher.
    """
    training = replace(training, recipe=replace(training.recipe, steps=_STEPS + 1))
    model = task_model(begun.imported, begun.prepared, training).to(choose_device(training.device))
    stream, loss = task_stream(begun.prepared, training.recipe), loss_of(begun.prepared.task.kind)
    with threads(training.threads):
        state = begin(model, training.recipe)
        go_on(state, stream, loss, until=1)
        before = state.seconds
        go_on(state, stream, loss)
        step = (state.seconds - before) / _STEPS
        answer = _answer_seconds(model, stream)
    middle = (1 + smallest) / 2
    rows = len(begun.prepared.validation.examples)
    return Speeds(
        teacher=step,
        network=step * (1 + middle + smallest) + answer,
        validation=middle * answer * rows / training.recipe.batch,
        delivery=_DELIVERY,
    )


def _answer_seconds(model: torch.nn.Module, stream: object) -> float:
    device = next(model.parameters()).device
    model.eval()
    batches = [stream.batch(step).to(device) for step in range(_STEPS)]  # type: ignore[attr-defined]
    with torch.inference_mode():
        began = time.perf_counter()
        for batch in batches:
            scores_of(model, batch)
        return (time.perf_counter() - began) / _STEPS
