"""The floating-point counter that ELECTRA's authors published and later papers reuse.

It counts a multiplication and an addition as two, adds norms, softmax, dropout and biases, looks tokens up by
multiplying with a one-hot vector, and ends with a binary classifier over every token. One term is kept as published
although it looks like an oversight: the norm after attention is charged once, not once per feature.
"""

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput

_DROPOUT = 4
_NORM = 5
_ACTIVATION = 8
_SOFTMAX = 5


def electra_flops(card: Card, length: int = 128) -> int:
    """Count the FLOPs of inference on a classification task the way ELECTRA's authors do.

    The counter knows encoders made of self-attention and one feed-forward layer; any other design is refused.
    """
    if card.family != "encoder" or card.encoder is None or not isinstance(card.encoder.embedding, TokenEmbedding):
        raise IllegalInput(
            f"ELECTRA's counter knows text encoders only; this is a {card.family} design. Use macs or flops."
        )
    if card.encoder.projections:
        raise IllegalInput(
            "ELECTRA's counter knows layers of one width only; this design has several. Use macs or flops."
        )
    width = card.output_width
    blocks = sum(_block(layer, length) for layer in card.encoder.layers)
    classifier = 2 * width**2 + width + _ACTIVATION * width + 2 * width
    return length * (blocks + _embedding(card.encoder.embedding, length) + classifier)


def _block(layer: Layer, length: int) -> int:
    """Count one token's share of a layer."""
    if not isinstance(layer, Block) or not isinstance(layer.mixer, Attention) or len(layer.feed_forward) != 1:
        raise IllegalInput(
            "ELECTRA's counter knows self-attention with one feed-forward layer only. Use macs or flops."
        )
    if layer.mixer.score != "sdp" or layer.mixer.relative is not None:
        raise IllegalInput("ELECTRA's counter knows scaled dot products without relative positions. Use macs or flops.")
    width, heads, inner, hidden = (
        layer.width,
        layer.mixer.heads,
        layer.mixer.heads * layer.mixer.head_width,
        layer.feed_forward[0],
    )
    attention = 3 * (2 * width * inner + inner) + 2 * inner * length + (_SOFTMAX + _DROPOUT + 1) * length * heads
    attention += 2 * width * length + 2 * width**2 + width + (_DROPOUT + 1) * width + _NORM
    feed_forward = 4 * width * hidden + (_ACTIVATION + 1) * hidden + width + (_DROPOUT + 1 + _NORM) * width
    return attention + feed_forward


def _embedding(embedding: TokenEmbedding, length: int) -> int:
    """Count one token's share of the embedding."""
    table = embedding.table_width
    lookup = 2 * table * embedding.vocabulary + 2 * table * (length + 2) + 2 * table + (_NORM + _DROPOUT) * table
    return lookup + (2 * embedding.width * table + embedding.width if embedding.factorised else 0)
