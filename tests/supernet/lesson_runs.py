"""What tests of lessons from within have in common: a space, batches, and the losses of a step."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from tests.supernet.small import card, model, sentences

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.space.elastic import elastic
from formwright.supernet.automatic import sub_network
from formwright.supernet.hull import Hull
from formwright.supernet.lessons import Lesson, LessonContext
from formwright.supernet.network import SuperNetwork
from formwright.train.streams import Batch

KIND = "sequence-classification"
HEAD = HeadSpec(KIND, 2)
LARGEST, SMALLEST = card(), sub_network(card(), ((1, 8),) * 3)
NARROW = sub_network(card(), ((1, 8),) * 3, 6)
HULL = Hull(elastic(card(), (1, 2, 4), (8, 16, 24)), LARGEST, SMALLEST)


def batch(seed: int = 0) -> Batch:
    tokens, mask = sentences(8, seed)
    return Batch(tokens, tokens[:, 0] % 2, mask)


def bound(
    lesson: Lesson, cards: list[Card], teacher: Any = None, steps: int = 4, hull: Hull = HULL
) -> tuple[SuperNetwork, Any]:
    network = SuperNetwork(model(1), lambda rng, step: cards, teacher)
    return network, lesson.bind(KIND, LessonContext(network, hull, steps))


def losses(network: SuperNetwork, loss: Any, rows: Batch) -> list[torch.Tensor]:
    return list(loss(network(rows.inputs), rows))


def translation() -> Batch:
    (tokens, mask), (targets, targets_mask) = sentences(6, 1), sentences(6, 2)
    return Batch(tokens, targets, mask, targets=targets, targets_mask=targets_mask)


def outputs(models: Iterable[TaskModel], rows: Batch) -> Iterator[Output]:
    return (one.transformer(rows.inputs, rows.mask, None, rows.targets, rows.targets_mask) for one in models)
