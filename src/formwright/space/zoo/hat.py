"""HAT (Wang et al., 2020): translation models with per-layer sizes and cross-attention to several encoder layers.

The values are the authors' configuration for WMT English-German. Queries, keys and values are 512 wide in every layer,
so the number of heads changes no parameter count. The nano space is ours, for data of the size of Multi30k.
"""

from dataclasses import dataclass
from functools import cache

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.space import Choice, Fields, Record, Repeat, Space
from formwright.space.zoo.translation import VOCABULARY


@dataclass(frozen=True)
class HatSizes:
    """What the designs of a space may have; `inner` is the width of queries, keys and values of every layer."""

    inner: int
    widths: tuple[int, ...]
    heads: tuple[int, ...]
    feed_forward: tuple[int, ...]
    encoder: int
    decoder: tuple[int, ...]
    vocabulary: int

    def space(self, name: str) -> Space:
        heads, hidden = Choice(self.heads), Choice(self.feed_forward)
        below = Record.of(heads=heads, feed_forward=hidden)
        above = Record.of(heads=heads, cross_heads=heads, feed_forward=hidden, encoder_layers=Choice((1, 2, 3)))
        root = Record.of(
            encoder=Record.of(width=Choice(self.widths), layers=Repeat(below, self.encoder)),
            decoder=Record.of(width=Choice(self.widths), layers=Repeat(above, self.decoder)),
        )
        about = "translation models that attend to several encoder layers (HAT, Wang et al. 2020)"
        return Space(name, root, self._card, about)

    def _card(self, design: Fields) -> Card:
        below, above = design.encoder, design.decoder
        encoder = tuple(encoder_layer(below.width, one.heads, one.feed_forward, self.inner) for one in below.layers)
        decoder = tuple(
            decoder_layer(above.width, one.heads, one.cross_heads, one.feed_forward, one.encoder_layers, self.inner)
            for one in above.layers
        )
        return model(encoder, decoder, self.vocabulary)


PUBLISHED = HatSizes(512, (640, 512), (8, 4), (3072, 2048, 1024), 6, (6, 5, 4, 3, 2, 1), VOCABULARY)
SMALL = HatSizes(128, (128, 96, 64), (4, 2), (256, 192, 128), 3, (3, 2, 1), 4_000)


@cache
def encoder_layer(width: int, heads: int, feed_forward: int, inner: int = PUBLISHED.inner) -> Block:
    return Block(width, Attention(heads, inner // heads), (feed_forward,), activation="relu")


@cache
def decoder_layer(
    width: int, heads: int, cross_heads: int, feed_forward: int, encoder_layers: int, inner: int = PUBLISHED.inner
) -> Block:
    """Describe a decoder layer that attends to the last `encoder_layers` layers of the encoder."""
    cross = CrossAttention(cross_heads, inner // cross_heads, encoder_layers)
    return Block(width, Attention(heads, inner // heads), (feed_forward,), activation="relu", cross=cross)


def model(encoder: tuple[Block, ...], decoder: tuple[Block, ...], vocabulary: int = VOCABULARY) -> Card:
    below, above = (
        TokenEmbedding(vocabulary, layers[0].width, positions="sinusoidal", norm=False) for layers in (encoder, decoder)
    )
    return Card(encoder=Stack(below, encoder), decoder=Stack(above, decoder, causal=True))


HAT, NANO = PUBLISHED.space("hat"), SMALL.space("hat-nano")
