"""A small encoder with a head, random weights and a few sentences, for the tests of shared weights."""

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel

HEADS, CHANNELS, LAYERS = 4, 24, 3
SPEC = HeadSpec("sequence-classification", 2)


def card(layers: int = LAYERS) -> Card:
    block = Block(width=16, mixer=Attention(heads=HEADS, head_width=4), feed_forward=(CHANNELS,))
    return Card(encoder=Stack(TokenEmbedding(vocabulary=30, width=16, length=12), (block,) * layers))


def model(seed: int = 0, dropout: float = 0.0) -> TaskModel:
    """Build a model whose weights are large and all different, biases too."""
    built = build(card(), Settings(dropout=dropout), SPEC, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    assert isinstance(built, TaskModel)
    return built.eval()


def sentences(rows: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Give token ids and a mask."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 10, (rows, 1), generator=generator)
    return torch.randint(30, (rows, 9), generator=generator), torch.arange(9)[None] < lengths
