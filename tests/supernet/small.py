"""Small models of every family with heads, random weights and a few sentences, for the tests of shared weights."""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import (
    Attention,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    OpGraph,
    Relative,
    SeparableConvolution,
)
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel

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


def _translator(encoder: TokenEmbedding, decoder: TokenEmbedding, **options: bool) -> Card:
    block = Block(16, Attention(HEADS, 4, bias=False), (CHANNELS,), "relu", "pre")
    above = Block(16, Attention(3, 4), (20,), cross=CrossAttention(2, 8, layers=2))
    stacks = Stack(encoder, (block,) * 2, final_norm=True), Stack(decoder, (above,) * 2, causal=True)
    return Card(*stacks, **options)


_PLAIN, _NARROW = TokenEmbedding(30, 16, length=12), TokenEmbedding(30, 16, factorised=8, positions="sinusoidal")
_OPERATIONS = (
    SeparableConvolution(3),
    DynamicConvolution(3, HEADS, 4, Relative(5)),
    LightweightConvolution(3, 4),
    OpGraph(HEADS, 4, ("softmax", ("matmul", ("matmul", "Q", ("transpose", "K")), "V"))),
    Identity(),
)
_FRAMES = Stack(FrameEmbedding(6, 16), (_block("pre"), Block(16, Attention(2, 8, "wma"), (12, 20))), final_norm=True)
FAMILIES = CASES | {
    "decoder": (Card(decoder=Stack(_PLAIN, (_block("pre"),) * 2, True, True)), HeadSpec("causal-lm")),
    "narrow decoder": (Card(decoder=Stack(_NARROW, (_block(),) * 2, True)), HeadSpec("causal-lm")),
    "translator": (_translator(_PLAIN, _PLAIN), HeadSpec("seq2seq-lm")),
    "translator with one table": (_translator(_PLAIN, _PLAIN, share_embedding=True), HeadSpec("seq2seq-lm")),
    "narrow translator": (_translator(_NARROW, _NARROW, share_embedding=True), HeadSpec("seq2seq-lm")),
    "frames": (Card(encoder=_FRAMES), SPEC),
    "operations": (
        Card(encoder=Stack(replace(_PLAIN, positions="relative"), tuple(Block(16, one, (12,)) for one in _OPERATIONS))),
        SPEC,
    ),
}  # every kind of design whose hidden size has a free order


def inputs_of(one: Card) -> tuple[Tensor | None, ...]:
    """Give what a model of the card reads: images, frames and a mask, or tokens, a mask, and types or targets."""
    generator = torch.Generator().manual_seed(0)
    if one.family == "vision":
        return (torch.randn(5, 3, 8, 8, generator=generator),)
    tokens, mask = sentences()
    if isinstance(one.stacks[0].embedding, FrameEmbedding):
        return torch.randn(*tokens.shape, one.stacks[0].embedding.features, generator=generator), mask
    if one.family == "encoder-decoder":
        return tokens, mask, None, *sentences(seed=1)
    return (tokens, mask, tokens % 2) if one.family == "encoder" else (tokens, mask)


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
