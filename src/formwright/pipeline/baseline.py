"""The design to beat: an ordinary transformer made by hand, of no smaller size."""

from collections.abc import Callable
from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.cost import params

_HEAD = 16  # features of a head; widths are multiples of it
_WIDEST = 4096


def plain_design(card: Card) -> Card:
    """Give the narrowest plain design, as deep as a card and reading the same input, that has no fewer parameters.

    Every layer is BERT's: attention, in a decoder also to the encoder, then a feed-forward layer four times as wide;
    positions are learned.
    """
    return next(plain for plain in map(_of_width(card), range(_HEAD, _WIDEST, _HEAD)) if params(plain) >= params(card))


def _of_width(card: Card) -> Callable[[int], Card]:
    def plain(width: int) -> Card:
        cross = CrossAttention(width // _HEAD, _HEAD) if card.encoder is not None else None
        return Card(
            encoder=None if card.encoder is None else _stack(card.encoder, width),
            decoder=None if card.decoder is None else _stack(card.decoder, width, cross),
            share_embedding=card.share_embedding,
        )

    return plain


def _stack(stack: Stack, width: int, cross: CrossAttention | None = None) -> Stack:
    block = Block(width, Attention(width // _HEAD, _HEAD), (4 * width,), cross=cross)
    embedding = replace(stack.embedding, width=width, positions="learned")
    if isinstance(embedding, TokenEmbedding):
        embedding = replace(embedding, factorised=None)
    return Stack(embedding, tuple(block for _ in stack.layers), causal=stack.causal)
