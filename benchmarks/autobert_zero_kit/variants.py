"""Designs made of a design: without convolutions or attentions, with kernels in another order, and a BERT as large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from autobert_zero_kit.setting import LAYERS
from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention, LightweightConvolution, OpGraph
from formwright.arch.resize import extended
from formwright.cost import params
from formwright.space import Space
from formwright.space.design import Case, Fields
from formwright.space.zoo.autobert_zero import SECOND_LAYER, TWELFTH_LAYER

DESCENDING, ASCENDING, SHUFFLED = (31, 15, 7, 3), (3, 7, 15, 31), (7, 31, 3, 15)


def deepened(card: Card) -> Card:
    """Give a found block of layers twice, one after the other, as the paper enlarges its design."""
    return extended(card, 2, block=LAYERS)


def published(space: Space) -> Card:
    """Give the published pattern in the size of a space: two blocks of a convolution and a published attention."""
    first, second = Case("attention", SECOND_LAYER), Case("attention", TWELFTH_LAYER)
    return space.card(Fields.of(layers=(Case("convolution", 31), first, Case("convolution", 5), second)))


def of_kernels(space: Space, kernels: Sequence[int]) -> Card:
    """Give the design that has these convolutions and nothing else."""
    return space.card(Fields.of(layers=tuple(Case("convolution", kernel) for kernel in kernels)))


def kernels_of(card: Card) -> tuple[int, ...]:
    """List the kernels of a design from the input on."""
    mixers = [block.mixer for block in _blocks(card)]
    return tuple(mixer.kernel for mixer in mixers if isinstance(mixer, LightweightConvolution))


def with_kernels(card: Card, kernels: Sequence[int]) -> Card:
    """Give the design with other kernels in its convolutions, from the input on."""
    left = iter(kernels)

    def changed(block: Block) -> Block:
        if isinstance(block.mixer, LightweightConvolution):
            return replace(block, mixer=replace(block.mixer, kernel=next(left)))
        return block

    return _with(card, [changed(block) for block in _blocks(card)])


def attention_only(card: Card) -> Card | None:
    """Replace each convolution by the attention directly behind it, as the paper's Table 5 does.

    Where none is behind, the nearest before is taken. None where the design has one kind of layers alone.
    """
    return _only(card, OpGraph, behind_first=True)


def convolution_only(card: Card) -> Card | None:
    """Replace each attention by the convolution directly before it; where none is before, by the nearest behind."""
    return _only(card, LightweightConvolution, behind_first=False)


def _only(card: Card, kind: type[OpGraph | LightweightConvolution], *, behind_first: bool) -> Card | None:
    blocks = _blocks(card)
    if len({type(block.mixer) for block in blocks}) < 2:
        return None

    def nearest(place: int) -> Block:
        before, behind = blocks[place::-1], blocks[place:]
        order = [*behind, *before] if behind_first else [*before, *behind]
        return next(block for block in order if isinstance(block.mixer, kind))

    return _with(card, [nearest(place) for place in range(len(blocks))])


def bert_like(card: Card) -> Card:
    """Give BERT's layers in the depth and width of a design, with feed-forward layers that make it as large."""
    block = _blocks(card)[0]
    mixer = block.mixer
    assert isinstance(mixer, OpGraph | LightweightConvolution)
    attention = Attention(mixer.heads, block.width // mixer.heads)

    def bert(hidden: int) -> Card:
        return _with(card, [Block(block.width, attention, (hidden,)) for _ in _blocks(card)])

    one, two = params(bert(1)), params(bert(2))  # which grow by the same amount with every unit
    return bert(max(1, 1 + round((params(card) - one) / (two - one))))


def is_descending(kernels: Sequence[int]) -> bool:
    """Tell whether no kernel is larger than the one before."""
    return all(first >= second for first, second in pairwise(kernels))


def comparisons(space: Space, found: Card) -> dict[str, Card]:
    """Give, by name, all designs of which each is compared with another; those that do not exist are left out."""
    designs: dict[str, Card | None] = {}
    for name, card in (("found", found), ("published", published(space))):
        only = {"attention only": attention_only(card), "convolution only": convolution_only(card)}
        designs |= {name: card} | {f"{name}, {kind}": variant for kind, variant in only.items()}
    designs["found, BERT as large"] = bert_like(found)
    orders = {"descending": DESCENDING, "ascending": ASCENDING, "shuffled": SHUFFLED}
    designs |= {f"convolutions, kernels {name}": of_kernels(space, kernels) for name, kernels in orders.items()}
    if len(set(kernels := kernels_of(found))) > 1:
        designs["found, kernels descending"] = with_kernels(found, sorted(kernels, reverse=True))
        designs["found, kernels ascending"] = with_kernels(found, sorted(kernels))
    return {name: card for name, card in designs.items() if card is not None}


def _blocks(card: Card) -> list[Block]:
    assert card.encoder is not None
    blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    assert len(blocks) == len(card.encoder.layers), "the space has blocks alone"
    return blocks


def _with(card: Card, layers: Sequence[Layer]) -> Card:
    assert card.encoder is not None
    stack: Stack = replace(card.encoder, layers=tuple(layers))
    return replace(card, encoder=stack)
