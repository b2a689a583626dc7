"""The design to beat: an ordinary transformer made by hand, of no smaller size."""

from collections.abc import Callable
from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.cost import params

_HEAD = 16  # features of a head; widths are multiples of it
_WIDEST = 4096


def plain_design(card: Card) -> Card:
    """Give the narrowest plain stack, as deep as a card and reading the same input, that has no fewer parameters.

    Every layer is BERT's: attention, then a feed-forward layer four times as wide; positions are learned.
    """
    if len(card.stacks) != 1:
        raise IllegalInput(f"there is no plain counterpart of an {card.family} design yet")
    return next(plain for plain in map(_of_width(card), range(_HEAD, _WIDEST, _HEAD)) if params(plain) >= params(card))


def _of_width(card: Card) -> Callable[[int], Card]:
    stack = card.stacks[0]

    def plain(width: int) -> Card:
        block = Block(width, Attention(width // _HEAD, _HEAD), (4 * width,))
        embedding = replace(stack.embedding, width=width, positions="learned")
        if isinstance(embedding, TokenEmbedding):
            embedding = replace(embedding, factorised=None)
        layers = tuple(block for _ in stack.layers)
        return _with(card, Stack(embedding, layers, causal=stack.causal))

    return plain


def _with(card: Card, stack: Stack) -> Card:
    return Card(encoder=stack) if card.encoder is not None else Card(decoder=stack)
