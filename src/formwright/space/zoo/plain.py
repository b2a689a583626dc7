"""Plain designs for small rows, made by hand: vision transformers, and an encoder of recordings and series.

No publication has them: they are something to train at once, and to compare with what a search finds.
"""

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention

_HEAD = 16


def _vision(image: int, patch: int, channels: int, width: int, layers: int = 4) -> Card:
    block = Block(width, Attention(width // _HEAD, _HEAD), (2 * width,), norm="pre")
    return Card(Stack(PatchEmbedding(image, patch, width, channels=channels), (block,) * layers, final_norm=True))


VIT_NANO_8 = _vision(8, 2, 1, 32)
VIT_NANO_28 = _vision(28, 4, 1, 64)
VIT_NANO_32 = _vision(32, 4, 3, 64)
FRAMES_NANO = Card(
    Stack(
        FrameEmbedding(40, 48, positions="sinusoidal", length=128),
        (Block(48, Attention(2, _HEAD), (96,)),) * 3,
        final_norm=True,
    )
)
