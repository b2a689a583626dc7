"""How fast this machine trains and judges a model: a few steps of the real thing, timed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import REAL, Chain, chain_card, chains
from formwright.supernet.bases import Basis, states
from formwright.supernet.blockwise import JUDGED, BlockNetwork, BlockTarget, DistilledStudent, given
from formwright.train.device import choose_device, threads
from formwright.train.fit import Training, task_stream
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import batch_of
from formwright.train.loop import begin, go_on, scores_of, train
from formwright.train.losses import loss_of
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch, Typical, in_order

if TYPE_CHECKING:
    from formwright.pipeline.blocks_source import Source

_STEPS = 3  # timed, after one that is not
_ROWS = 64  # that are judged at once
_CHAIN_STEPS = 4  # timed, after one that is not
_FITTED = 100  # answers of the teacher that bases and embeddings take
_TOGETHER = 2.0  # rounds judge half as many chains each time: twice the first round in all
_SHARED = 0.4  # of a chain's layers have to be computed for it alone


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


# --- blocks and students ---------------------------------------------------------------------------------------------


def fitting_seconds(source: "Source") -> float:
    """Estimate how long bases and embeddings take to be fitted."""
    batch = Typical(source.stream(0)).batch(0).to(source.device)
    with threads(1):
        return _FITTED * _seconds(partial(states, source.teacher, batch, source.ends))


def block_seconds(source: "Source", paths: int, candidates: int) -> tuple[float, float]:
    """Time a step of the last block, whose teacher is the whole one, and judging its chains in all rounds together."""
    basis, held = _basis(source), source.held_batches(JUDGED)
    alive = [chain for chain in chains(source.menu) if len(chain.operations) == source.menu.layers]
    some = alive[:: max(len(alive) // 10, 1)]
    target = BlockTarget(source.teacher, (source.ends[-2], source.ends[-1]), (basis, basis))
    network = BlockNetwork(source.menu, target, alive, paths).to(source.device)
    with threads(1):
        step = _step_seconds(source, network)
        judged = _seconds(lambda: network.losses(some, held))
        judged -= sum(_seconds(partial(states, source.teacher, one, source.ends)) for one in held)
    return step, _TOGETHER * max(judged, 0.0) / len(some) * min(candidates, len(alive)) * _SHARED


def student_seconds(source: "Source") -> float:
    """Time a step of a student of a middle width."""
    width = source.menu.widths[len(source.menu.widths) // 2]
    operations = tuple(REAL[place % 2] for place in range(source.menu.layers))
    blocks = [Chain(width, operations)] * source.menu.blocks
    model = build(chain_card(source.menu, source.menu.embeddings[1], blocks), Settings(dropout=0.0))
    assert isinstance(model, Transformer)
    model.to(source.device)
    with threads(1):
        bases = [_basis(source)] * len(source.ends)
        return _step_seconds(source, DistilledStudent(model, blocks, source.teacher, source.ends, bases))


def _basis(source: "Source") -> Basis:
    width = source.card.output_width
    return Basis(torch.zeros(width), torch.eye(width), torch.ones(width))


def _step_seconds(source: "Source", model: torch.nn.Module) -> float:
    times = list[float]()
    recipe = Hyperparameters(_CHAIN_STEPS + 1, source.stage.batch)
    train(model, Typical(source.stream(0)), given, recipe, after_step=lambda *_: times.append(time.perf_counter()))
    return (times[-1] - times[0]) / _CHAIN_STEPS


def _seconds(do: Callable[[], object]) -> float:
    do()
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
