"""LightHuBERT (Wang et al., 2022): speech encoders with one width and free heads and feed-forward ratios per layer.

Cards of the published spaces start from frames of 512 features. The waveform front end, the vector that stands for
masked frames and the convolution that tells positions are not searched; cards count their parameters as `idle`, so that
published sizes are exact. In the authors' code the small designs are slices of tensors that are 768 wide, though the
largest of them has a width of 512. Heads are 64 wide. The nano space is ours: heads of 16, and frames of 40 features,
such as log-mel spectra.
"""

from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Repeat, Space

_FRONT = 4_206_592 + 768  # the waveform front end, and the vector of masked frames
_GROUPS, _KERNEL = 16, 128  # of the convolution that tells positions


@dataclass(frozen=True)
class FrameSizes:
    """What all designs of a size share: their frames, the width of a head, and whether idle parts are counted."""

    features: int = 512
    length: int = 512
    head_width: int = 64
    published: bool = True

    def card(self, design: Fields) -> Card:
        width = design.width
        layers = tuple(
            Block(width, Attention(layer.heads, self.head_width), (int(width * layer.ratio),))
            for layer in design.layers
        )
        embedding = FrameEmbedding(self.features, width, positions="sinusoidal", length=self.length)
        idle = _FRONT + width * (width // _GROUPS) * _KERNEL + width if self.published else 0
        return Card(encoder=Stack(embedding, layers, final_norm=True), idle=idle)


def _space(
    size: str,
    widths: tuple[int, ...],
    heads: tuple[int, ...],
    ratios: tuple[float, ...],
    depths: tuple[int, ...],
    frames: FrameSizes | None = None,
) -> Space:
    layer = Record.of(heads=Choice(heads), ratio=Choice(ratios))
    root = Record.of(width=Choice(widths), layers=Repeat(layer, depths))
    about = f"speech encoders of {size} size (LightHuBERT, Wang et al. 2022)"
    return Space(f"lighthubert-{size}", root, (frames or FrameSizes()).card, about)


SMALL = _space("small", (256, 384, 512), (4, 6, 8), (3.0, 3.5, 4.0), (10, 11, 12))
BASE = _space("base", (512, 640, 768), (8, 10, 12), (3.5, 4.0), (12,))
NANO = _space("nano", (32, 48, 64), (1, 2, 4), (1.0, 2.0, 4.0), (2, 3, 4), FrameSizes(40, 128, 16, published=False))
