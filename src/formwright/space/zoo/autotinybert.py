"""AutoTinyBERT (Yin et al., 2021): small BERTs with the same sizes in every layer.

Ranges are those of the authors' searcher: 1 to 8 layers, width 128 to 768, 1 to 12 heads, feed-forward 128 to 3072.
The steps inside the ranges are chosen here. Heads are 64 wide.
"""

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Space
from formwright.space.zoo.bert import VOCABULARY


def _card(design: Fields) -> Card:
    block = Block(design.hidden, Attention(design.heads, 64), (design.feed_forward,))
    return Card(
        encoder=Stack(TokenEmbedding(VOCABULARY, design.hidden, types=2), (block,) * design.layers), pooler=True
    )


AUTOTINYBERT = Space(
    "autotinybert",
    Record.of(
        layers=Choice(tuple(range(1, 9))),
        hidden=Choice(tuple(range(128, 769, 64))),
        heads=Choice(tuple(range(1, 13))),
        feed_forward=Choice(tuple(range(128, 3073, 128))),
    ),
    _card,
    "small BERTs with equal layers (AutoTinyBERT, Yin et al. 2021)",
)
