"""LightHuBERT (Wang et al., 2022): speech encoders with one width and free heads and feed-forward ratios per layer.

The waveform front end and its positional convolution are not searched and are no part of the cards, which start from
frames of 512 features; published parameter ranges include about 9 million for them. Heads are 64 wide.
"""

from formwright.arch.card import Card
from formwright.arch.layers import Block, FrameEmbedding, Stack
from formwright.arch.ops import Attention
from formwright.space import Choice, Fields, Record, Repeat, Space


def _card(design: Fields) -> Card:
    layers = tuple(
        Block(design.width, Attention(layer.heads, 64), (int(design.width * layer.ratio),)) for layer in design.layers
    )
    return Card(encoder=Stack(FrameEmbedding(512, design.width, positions="sinusoidal"), layers))


def _space(
    size: str, widths: tuple[int, ...], heads: tuple[int, ...], ratios: tuple[float, ...], depths: tuple[int, ...]
) -> Space:
    layer = Record.of(heads=Choice(heads), ratio=Choice(ratios))
    root = Record.of(width=Choice(widths), layers=Repeat(layer, depths))
    return Space(f"lighthubert-{size}", root, _card, f"speech encoders of {size} size (LightHuBERT, Wang et al. 2022)")


SMALL = _space("small", (256, 384, 512), (4, 6, 8), (3.0, 3.5, 4.0), (10, 11, 12))
BASE = _space("base", (512, 640, 768), (8, 10, 12), (3.5, 4.0), (12,))
