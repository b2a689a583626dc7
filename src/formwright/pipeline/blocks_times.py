"""How fast this machine trains and judges blocks and students: a few steps of the real thing, timed."""

import time
from collections.abc import Callable
from functools import partial

import torch

from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.pipeline.blocks_source import Source
from formwright.space.zoo.chains import REAL, Chain, chain_card, chains
from formwright.supernet.bases import Basis, states
from formwright.supernet.block_rounds import JUDGED
from formwright.supernet.blockwise import BlockNetwork, DistilledStudent, Lesson, given
from formwright.train.device import threads
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
from formwright.train.streams import Typical

_STEPS = 4  # timed, after one that is not
_FITTED = 100  # answers of the teacher that bases and embeddings take
_TOGETHER = 2.0  # rounds judge half as many chains each time: twice the first round in all
_SHARED = 0.4  # of a chain's layers have to be computed for it alone


def fitting_seconds(source: Source) -> float:
    """Estimate how long bases and embeddings take to be fitted."""
    batch = Typical(source.stream(0)).batch(0).to(source.device)
    with threads(1):
        return _FITTED * _seconds(partial(states, source.teacher, batch, source.ends))


def block_seconds(source: Source, paths: int, candidates: int) -> tuple[float, float]:
    """Time a step of the last block, whose teacher is the whole one, and judging its chains in all rounds together."""
    basis, held = _basis(source), source.held_batches(JUDGED)
    alive = [chain for chain in chains(source.menu) if len(chain.operations) == source.menu.layers]
    some = alive[:: max(len(alive) // 10, 1)]
    lesson = Lesson(source.teacher, (source.ends[-2], source.ends[-1]), (basis, basis))
    network = BlockNetwork(source.menu, lesson, alive, paths).to(source.device)
    with threads(1):
        step = _step_seconds(source, network)
        judged = _seconds(lambda: network.losses(some, held))
        judged -= sum(_seconds(partial(states, source.teacher, one, source.ends)) for one in held)
    return step, _TOGETHER * max(judged, 0.0) / len(some) * min(candidates, len(alive)) * _SHARED


def student_seconds(source: Source) -> float:
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


def _basis(source: Source) -> Basis:
    width = source.card.output_width
    return Basis(torch.zeros(width), torch.eye(width), torch.ones(width))


def _step_seconds(source: Source, model: torch.nn.Module) -> float:
    times = list[float]()
    recipe = Hyperparameters(_STEPS + 1, source.stage.batch)
    train(model, Typical(source.stream(0)), given, recipe, after_step=lambda *_: times.append(time.perf_counter()))
    return (times[-1] - times[0]) / _STEPS


def _seconds(do: Callable[[], object]) -> float:
    do()
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
