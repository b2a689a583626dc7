"""How fast this machine trains and judges blocks and students: a few steps of the real thing, timed."""

import time
from collections.abc import Callable
from functools import partial

import torch

from formwright.compress.blockwise.job import Started
from formwright.compress.blockwise.plan import Speeds
from formwright.compress.blockwise.rounds import JUDGED
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import REAL, Chain, chain_card, chains
from formwright.supernet.assembled import Taught
from formwright.supernet.bases import Basis
from formwright.supernet.blockwise import BlockNetwork, Lesson, given
from formwright.supernet.teacher_states import states
from formwright.train.device import choose_device, threads
from formwright.train.loop import train
from formwright.train.recipe import Recipe
from formwright.train.streams import Typical

_STEPS = 4  # timed, after one that is not
_PREPARED = 100  # answers of the teacher that bases and embeddings take
_TOGETHER = 2.0  # rounds judge half as many chains each time: twice the first round in all
_SHARED = 0.4  # of a chain's layers have to be computed for it alone


def measured_speeds(started: Started) -> Speeds:
    """Time the last block, whose teacher is the whole one, and a student of a middle width."""
    method, width = started.job.method, started.imported.card.output_width
    basis = Basis(torch.zeros(width), torch.eye(width), torch.ones(width))
    device, held = choose_device(started.job.device), started.held_batches(JUDGED)
    batch = Typical(started.stream(0)).batch(0).to(device)
    alive = [chain for chain in chains(started.menu) if len(chain.operations) == started.menu.layers]
    some = alive[:: max(len(alive) // 10, 1)]
    lesson = Lesson(started.teacher, (started.ends[-2], started.ends[-1]), (basis, basis))
    network = BlockNetwork(started.menu, lesson, alive, method.paths).to(device)
    with threads(1):
        answer = _seconds(partial(states, started.teacher, batch, started.ends))
        step = _step_seconds(started, network)
        judged = _seconds(lambda: network.losses(some, held))
        judged -= sum(_seconds(partial(states, started.teacher, one, started.ends)) for one in held)
        student = _step_seconds(started, _student(started, basis))
    number = min(method.candidates, len(alive))
    judging = _TOGETHER * max(judged, 0.0) / len(some) * number * _SHARED / (method.rounds + 1)
    return Speeds(step, judging, student, _PREPARED * answer)


def _student(started: Started, basis: Basis) -> Taught:
    width = started.menu.widths[len(started.menu.widths) // 2]
    operations = tuple(REAL[place % 2] for place in range(started.menu.layers))
    blocks = [Chain(width, operations)] * started.menu.blocks
    model = build(chain_card(started.menu, started.menu.embeddings[1], blocks), Settings(dropout=0.0))
    assert isinstance(model, Transformer)
    model.to(choose_device(started.job.device))
    return Taught(model, blocks, started.teacher, started.ends, [basis] * len(started.ends))


def _step_seconds(started: Started, model: torch.nn.Module) -> float:
    times = list[float]()
    recipe = Recipe(_STEPS + 1, started.job.method.batch)
    train(model, Typical(started.stream(0)), given, recipe, after_step=lambda *_: times.append(time.perf_counter()))
    return (times[-1] - times[0]) / _STEPS


def _seconds(do: Callable[[], object]) -> float:
    do()
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
