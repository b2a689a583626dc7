"""A small encoder with a head, random weights and a few sentences, for the tests of shared weights."""

from typing import Literal

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Relative
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel

HEADS, CHANNELS, LAYERS = 4, 24, 3
SPEC = HeadSpec("sequence-classification", 2)


def card(layers: int = LAYERS) -> Card:
    block = Block(width=16, mixer=Attention(heads=HEADS, head_width=4), feed_forward=(CHANNELS,))
    return Card(encoder=Stack(TokenEmbedding(vocabulary=30, width=16, length=12), (block,) * layers))


def _block(norm: Literal["pre", "post"] = "post", relative: Relative | None = None) -> Block:
    return Block(16, Attention(HEADS, 4, relative=relative), (CHANNELS,), norm=norm)


# hidden size 16; the inner width of attention is 16 too, so that axes cannot be told apart by their length
BERT = Card(encoder=Stack(TokenEmbedding(30, 16, length=12, types=2), (_block(),) * 2), pooler=True)
ELECTRA = Card(encoder=Stack(TokenEmbedding(30, 16, factorised=16, length=12, types=2), (_block(),) * 2))
VIT = Card(encoder=Stack(PatchEmbedding(8, 4, 16), (_block("pre", Relative(6, 2, values=True)),) * 2, final_norm=True))
SPANS = HeadSpec("span-extraction", 2)
CASES = {
    "bert": (BERT, SPEC),
    "bert spans": (BERT, SPANS),
    "bert words": (BERT, HeadSpec("masked-lm")),
    "electra": (ELECTRA, SPEC),
    "electra spans": (ELECTRA, SPANS),
    "electra words": (ELECTRA, HeadSpec("masked-lm")),
    "vit": (VIT, SPEC),
}


def inputs_of(one: Card) -> tuple[Tensor, ...]:
    """Give what a model of the card reads: an image, or token ids, a mask and types."""
    if one.family == "vision":
        return (torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0)),)
    tokens, mask = sentences()
    return tokens, mask, tokens % 2


def model(seed: int = 0, dropout: float = 0.0, of: Card | None = None, spec: HeadSpec = SPEC) -> TaskModel:
    """Build a model whose weights are large and all different, biases too."""
    built = build(of or card(), Settings(dropout=dropout), spec, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return built.eval()


def sentences(rows: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Give token ids and a mask."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 10, (rows, 1), generator=generator)
    return torch.randint(30, (rows, 9), generator=generator), torch.arange(9)[None] < lengths
