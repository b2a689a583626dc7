"""AutoFormer (Chen et al., 2021): vision transformers with free depth, width, heads and feed-forward ratios.

Heads are 64 wide and every layer holds two-dimensional relative positions for keys and values. The base space takes 9
or 10 heads, as the authors' super-network does; their file of the found model lists 8 to 10. The nano spaces are ours:
the same structure for images of 8, 28 and 32 pixels a side, such as the builtin task `digits`, Fashion-MNIST and CIFAR.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, Relative
from formwright.space import Choice, Record, Repeat, Space


@dataclass(frozen=True)
class Frame:
    """What all designs of a size share: the images, their patches, the classes and the width of a head."""

    image: int = 224
    patch: int = 16
    channels: int = 3
    classes: int = 1_000
    head_width: int = 64

    @property
    def positions(self) -> Relative:
        """Give relative positions that reach across the image, with a row for the class token (and one to spare)."""
        return Relative(rows=2 * (self.image // self.patch) + 2, axes=2, values=True)


def vision_transformer(width: int, heads: Sequence[int], ratios: Sequence[float], frame: Frame | None = None) -> Card:
    """Describe a vision transformer, by default for 224-pixel images, 16-pixel patches and 1,000 classes."""
    frame = frame or Frame()
    layers = tuple(
        Block(width, Attention(count, frame.head_width, relative=frame.positions), (int(width * ratio),), norm="pre")
        for count, ratio in zip(heads, ratios, strict=True)
    )
    embedding = PatchEmbedding(frame.image, frame.patch, width, channels=frame.channels)
    return Card(encoder=Stack(embedding, layers, final_norm=True), classes=frame.classes)


def _space(
    size: str,
    widths: tuple[int, ...],
    heads: tuple[int, ...],
    ratios: tuple[float, ...],
    depths: tuple[int, ...],
    frame: Frame | None = None,
) -> Space:
    layer = Record.of(heads=Choice(heads), ratio=Choice(ratios))
    root = Record.of(width=Choice(widths), layers=Repeat(layer, depths))
    return Space(
        f"autoformer-{size}",
        root,
        lambda design: vision_transformer(
            design.width, [layer.heads for layer in design.layers], [layer.ratio for layer in design.layers], frame
        ),
        f"vision transformers of {size} size (AutoFormer, Chen et al. 2021)",
    )


TINY_SPACE = _space("tiny", (192, 216, 240), (3, 4), (3.5, 4.0), (12, 13, 14))
SMALL_SPACE = _space("small", (320, 384, 448), (5, 6, 7), (3.0, 3.5, 4.0), (12, 13, 14))
BASE_SPACE = _space("base", (528, 576, 624), (9, 10), (3.0, 3.5, 4.0), (14, 15, 16))
_DIGITS = Frame(image=8, patch=2, channels=1, classes=0, head_width=8)
NANO_SPACE = _space("nano", (16, 24, 32), (1, 2, 4), (0.5, 1.0, 2.0), (1, 2, 3, 4), _DIGITS)
_GREY, _COLOURED = (Frame(side, 4, channels, 0, 16) for side, channels in ((28, 1), (32, 3)))
NANO_28_SPACE = _space("nano-28", (32, 48, 64), (1, 2, 4), (0.5, 1.0, 2.0), (1, 2, 3, 4), _GREY)
NANO_32_SPACE = _space("nano-32", (32, 48, 64), (1, 2, 4), (0.5, 1.0, 2.0), (1, 2, 3, 4), _COLOURED)

# The published winners. The tiny one uses ratio 3, which its own space does not hold.
TINY = vision_transformer(192, [3] * 10 + [4, 3, 3], [3.5, 3.5, 3, 3.5, 3, 3, 4, 4, 3.5, 4, 3.5, 4, 3.5])
SMALL = vision_transformer(384, [6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7], [3, 3.5, 3, 3.5, 4, 4, 4, 4, 4, 4, 4, 3.5, 4])
BASE = vision_transformer(
    576, [9, 9, 9, 9, 9, 10, 9, 9, 10, 9, 10, 9, 9, 10], [3.5, 3.5, 4, 3.5, 4, 3.5, 3.5, 3, 4, 4, 3, 4, 3, 3.5]
)
SUPERNET_TINY = vision_transformer(256, [4] * 14, [4] * 14)
