"""A small teacher and random sentences, for the tests of block-wise students."""

import torch

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import Menu, boundaries, scaled
from formwright.supernet.bases import Basis, fit_bases
from formwright.train.streams import Batch

WIDTH, WORDS = 16, 40
CARD = Card(
    encoder=Stack(TokenEmbedding(WORDS, WIDTH, length=12, types=2), (Block(WIDTH, Attention(4, 4), (32,)),) * 2)
)
MENU: Menu = scaled(CARD)
ENDS = boundaries(2, MENU.blocks)


def teacher(card: Card = CARD) -> Transformer:
    model = build(card, Settings(dropout=0.0), seed=1, spread="width")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embedding" in name and parameter.ndim > 1:
                parameter.mul_(50)  # as spread out as those of a trained model
    return model.eval()


def batch(seed: int = 0, rows: int = 6, *, padded: bool = True) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randint(WORDS, (rows, 9), generator=generator)
    mask = torch.arange(9)[None] < torch.randint(3, 10, (rows, 1), generator=generator) if padded else None
    return Batch(inputs, inputs[:, 0], mask, torch.zeros_like(inputs))


def batches(number: int, first: int = 0) -> list[Batch]:
    return [batch(first + seed) for seed in range(number)]


def bases(model: Transformer) -> list[Basis]:
    return fit_bases(model, batches(20), ENDS)
