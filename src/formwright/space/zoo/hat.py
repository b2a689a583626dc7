"""HAT (Wang et al., 2020): translation models with per-layer sizes and cross-attention to several encoder layers.

The values are the authors' configuration for WMT English-German. Queries, keys and values are 512 wide in every layer,
so the number of heads changes no parameter count.
"""

from functools import cache

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.space import Choice, Fields, Record, Repeat, Space
from formwright.space.zoo.translation import VOCABULARY

INNER = 512
_HEADS = Choice((8, 4))
_FEED_FORWARD = Choice((3072, 2048, 1024))
_WIDTH = Choice((640, 512))


@cache
def encoder_layer(width: int, heads: int, feed_forward: int) -> Block:
    return Block(width, Attention(heads, INNER // heads), (feed_forward,), activation="relu")


@cache
def decoder_layer(width: int, heads: int, cross_heads: int, feed_forward: int, encoder_layers: int) -> Block:
    """Describe a decoder layer that attends to the last `encoder_layers` layers of the encoder."""
    cross = CrossAttention(cross_heads, INNER // cross_heads, encoder_layers)
    return Block(width, Attention(heads, INNER // heads), (feed_forward,), activation="relu", cross=cross)


def model(encoder: tuple[Block, ...], decoder: tuple[Block, ...]) -> Card:
    below, above = (
        TokenEmbedding(VOCABULARY, layers[0].width, positions="sinusoidal", norm=False) for layers in (encoder, decoder)
    )
    return Card(encoder=Stack(below, encoder), decoder=Stack(above, decoder, causal=True))


def _card(design: Fields) -> Card:
    below, above = design.encoder, design.decoder
    encoder = tuple(encoder_layer(below.width, layer.heads, layer.feed_forward) for layer in below.layers)
    decoder = tuple(
        decoder_layer(above.width, layer.heads, layer.cross_heads, layer.feed_forward, layer.encoder_layers)
        for layer in above.layers
    )
    return model(encoder, decoder)


HAT = Space(
    "hat",
    Record.of(
        encoder=Record.of(width=_WIDTH, layers=Repeat(Record.of(heads=_HEADS, feed_forward=_FEED_FORWARD), 6)),
        decoder=Record.of(
            width=_WIDTH,
            layers=Repeat(
                Record.of(
                    heads=_HEADS, cross_heads=_HEADS, feed_forward=_FEED_FORWARD, encoder_layers=Choice((1, 2, 3))
                ),
                (6, 5, 4, 3, 2, 1),
            ),
        ),
    ),
    _card,
    "translation models that attend to several encoder layers (HAT, Wang et al. 2020)",
)
