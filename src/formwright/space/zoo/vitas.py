"""ViTAS (Su et al., 2021): the five published models of the DeiT space.

Blocks are those of the authors' configuration: heads, the width of queries, of keys and of values, and that of the
feed-forward layer. Their configuration and the paper give the packed width of all three, three times as much. The cost
`vitas` counts operations as the authors do.
"""

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention


def _model(width: int, blocks: str) -> Card:
    """Read blocks as `heads/attention/feed-forward`."""
    sizes = [tuple(map(int, block.split("/"))) for block in blocks.split()]
    layers = tuple(
        Block(width, Attention(heads, inner // heads), (hidden,), norm="pre") for heads, inner, hidden in sizes
    )
    return Card(encoder=Stack(PatchEmbedding(224, 16, width), layers, final_norm=True), classes=1_000)


A = _model(154, "12/96/1008 16/240/576 6/96/1296 16/336/720 16/384/1008 16/288/1152 16/480/1296")
B = _model(192, "16/96/864 16/144/576 16/144/1008 12/384/864 12/336/720 12/288/576 16/144/1296 6/288/864")
C = _model(230, "3/144/720 " * 12)
E = _model(
    346,
    "16/240/720 16/336/864 16/288/1008 6/288/1008 3/192/720 12/432/1296 6/432/1152 12/240/144 12/480/864 6/192/1008 "
    "12/384/1296",
)
F = _model(
    307,
    "16/288/1728 16/96/2304 16/576/864 16/384/2016 16/672/864 16/480/1440 16/864/2304 16/480/2016 16/768/864 "
    "16/672/576 16/672/2016 16/480/2304 16/576/2304",
)
