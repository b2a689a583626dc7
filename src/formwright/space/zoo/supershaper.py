"""SuperShaper (Ganesan et al., 2021): BERT-base in which only the width of each layer is free.

The survey gives no values; the seven widths are chosen here. A layer of another width than its neighbour is reached
through a linear projection, the method's bottleneck.
"""

from functools import cache

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Repeat, Space
from formwright.space.zoo.bert import VOCABULARY

WIDTHS = (120, 240, 360, 480, 540, 600, 768)


@cache
def _block(width: int) -> Block:
    return Block(width, Attention(12, 64), (3072,))


def _card(design: Fields) -> Card:
    layers = tuple(_block(width) for width in design.widths)
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, layers[0].width, types=2), layers), pooler=True)


SUPERSHAPER = Space(
    "supershaper",
    Record.of(widths=Repeat(Choice(WIDTHS), 12)),
    _card,
    "BERT-base with free widths per layer (SuperShaper, Ganesan et al. 2021)",
)
