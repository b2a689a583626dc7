"""A task small enough to train in a second: does a sentence hold a certain token?"""

import torch

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.train.streams import Batch

CARD = Card(encoder=Stack(TokenEmbedding(12, 16, length=8), (Block(16, Attention(2, 8), (32,)),)))


class Toy:
    """Give sentences of six tokens; the label says whether token 1 is among them."""

    def batch(self, step: int) -> Batch:
        ids = torch.from_numpy(derive(0, "toy", step).integers(1, 10, (16, 6)))
        return Batch(ids, (ids == 1).any(1).long())


def model(seed: int = 0) -> TaskModel:
    built = build(CARD, head=HeadSpec("sequence-classification", 2), seed=seed)
    return built
