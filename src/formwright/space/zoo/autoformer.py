"""AutoFormer (Chen et al., 2021): vision transformers with free depth, width, heads and feed-forward ratios.

Heads are 64 wide and every layer holds two-dimensional relative positions for keys and values. The base space takes 9
or 10 heads, as the authors' configuration does; the survey's table prints 8 to 10, which does not give the published
size.
"""

from collections.abc import Sequence

from formwright.arch.card import Card
from formwright.arch.layers import Block, PatchEmbedding, Stack
from formwright.arch.ops import Attention, Relative
from formwright.space.choice import Choice
from formwright.space.record import Record
from formwright.space.repeat import Repeat
from formwright.space.space import Space

_POSITIONS = Relative(rows=30, axes=2, values=True)


def vision_transformer(width: int, heads: Sequence[int], ratios: Sequence[float]) -> Card:
    """Describe a vision transformer for 224-pixel images, 16-pixel patches and 1,000 classes."""
    layers = tuple(
        Block(width, Attention(count, 64, relative=_POSITIONS), (int(width * ratio),), norm="pre")
        for count, ratio in zip(heads, ratios, strict=True)
    )
    return Card(encoder=Stack(PatchEmbedding(224, 16, width), layers, final_norm=True), classes=1_000)


def _space(
    size: str, widths: tuple[int, ...], heads: tuple[int, ...], ratios: tuple[float, ...], depths: tuple[int, ...]
) -> Space:
    layer = Record.of(heads=Choice(heads), ratio=Choice(ratios))
    root = Record.of(width=Choice(widths), layers=Repeat(layer, depths))
    return Space(
        f"autoformer-{size}",
        root,
        lambda design: vision_transformer(
            design.width, [layer.heads for layer in design.layers], [layer.ratio for layer in design.layers]
        ),
        f"vision transformers of {size} size (AutoFormer, Chen et al. 2021)",
    )


TINY_SPACE = _space("tiny", (192, 216, 240), (3, 4), (3.5, 4.0), (12, 13, 14))
SMALL_SPACE = _space("small", (320, 384, 448), (5, 6, 7), (3.0, 3.5, 4.0), (12, 13, 14))
BASE_SPACE = _space("base", (528, 576, 624), (9, 10), (3.0, 3.5, 4.0), (14, 15, 16))

# The published winners. The tiny one uses ratio 3, which its own space does not hold.
TINY = vision_transformer(192, [3] * 10 + [4, 3, 3], [3.5, 3.5, 3, 3.5, 3, 3, 4, 4, 3.5, 4, 3.5, 4, 3.5])
SMALL = vision_transformer(384, [6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7], [3, 3.5, 3, 3.5, 4, 4, 4, 4, 4, 4, 4, 3.5, 4])
BASE = vision_transformer(
    576, [9, 9, 9, 9, 9, 10, 9, 9, 10, 9, 10, 9, 9, 10], [3.5, 3.5, 4, 3.5, 4, 3.5, 3.5, 3, 4, 4, 3, 4, 3, 3.5]
)
SUPERNET_TINY = vision_transformer(256, [4] * 14, [4] * 14)
