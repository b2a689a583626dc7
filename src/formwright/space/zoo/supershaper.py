"""SuperShaper (Ganesan et al., 2021): BERT-base in which only the width of each layer is free.

The widths are the authors' own. A linear map stands before every layer and behind the last one, the method's
bottleneck: the embedding and what a head reads stay 768 wide. Attention is as wide as its layer, in 12 heads. The
authors count the transform of their masked-language-model head, which has the size of the pooler, and a norm as wide as
the last layer: `idle` here.
The cards are shapes of the authors, named by their millions of parameters.
The nano space is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Repeat, Space


@dataclass(frozen=True)
class SuperShaperSizes:
    """What all designs of a space share, and the widths that a layer may have."""

    widths: tuple[int, ...]
    layers: int
    heads: int
    feed_forward: int
    tokens: TokenEmbedding
    published: bool = False

    def model(self, widths: Sequence[int]) -> Card:
        layers = tuple(
            Block(width, Attention(self.heads, width // self.heads), (self.feed_forward,)) for width in widths
        )
        stack = Stack(self.tokens, layers, joints="always", out=self.tokens.width)
        return Card(encoder=stack, pooler=True, idle=2 * widths[-1] if self.published else 0)

    def space(self, name: str, what: str) -> Space:
        def card(design: Fields) -> Card:
            return self.model(design.widths)

        root = Record.of(widths=Repeat(Choice(self.widths), self.layers))
        return Space(name, root, card, f"{what} with free widths per layer (SuperShaper, Ganesan et al. 2021)")


PUBLISHED = SuperShaperSizes(
    (120, 240, 360, 480, 540, 600, 768), 12, 12, 3_072, TokenEmbedding(28_996, 768, types=2), published=True
)
SMALL = SuperShaperSizes((24, 48, 72, 96), 4, 4, 192, TokenEmbedding(1_000, 96, types=2, length=128))
SUPERSHAPER, NANO = PUBLISHED.space("supershaper", "BERT-base"), SMALL.space("supershaper-nano", "a small BERT")

M37 = PUBLISHED.model([120] * 8 + [240] * 4)
M47 = PUBLISHED.model([240, 120, 120, *[240] * 5, *[360] * 4])
M56 = PUBLISHED.model([360, *[120] * 3, *[360] * 6, 540, 540])
M61 = PUBLISHED.model([360, *[240] * 3, *[360] * 4, 480, 480, 540, 540])
M87 = PUBLISHED.model([540, *[360] * 3, *[540] * 4, *[768] * 4])
M91 = PUBLISHED.model([600, *[360] * 3, *[600] * 4, *[768] * 4])
