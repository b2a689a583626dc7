from dataclasses import replace

import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.arch.overlap import biased_overlap, overlap_fraction

A = Block(32, Attention(2, 16), (64,))
B = replace(A, feed_forward=(128,))
ABOVE = replace(A, cross=CrossAttention(2, 16))


def encoder(*layers: Layer) -> Card:
    return Card(encoder=Stack(TokenEmbedding(9, 32), layers))


def both(encoder_layers: tuple[Layer, ...], decoder_layers: tuple[Layer, ...]) -> Card:
    table = TokenEmbedding(9, 32)
    return Card(encoder=Stack(table, encoder_layers), decoder=Stack(table, decoder_layers, causal=True))


@pytest.mark.parametrize(
    ("query", "neighbour", "overlap", "fraction"),
    [
        (encoder(A, A, B, B), encoder(A, A, B, B), 4, 1.0),
        (encoder(A, A, B, B), encoder(A, A, A, B), 2, 0.5),  # what agrees after the first difference does not count
        (encoder(A, A, B, B), encoder(B, A, B, B), 0, 0.0),
        (encoder(A, A), encoder(A, A, B, B), 2, 1.0),
        (encoder(A, A, B, B), encoder(A, A), 2, 0.5),  # the fraction is of the query's layers
        (both((A, B), (ABOVE,)), both((A, B), (ABOVE, ABOVE)), 3, 1.0),
        (both((A, B), (ABOVE,)), both((A, A), (ABOVE,)), 1, 1 / 3),
        (both((A,), (ABOVE,)), both((A, B), (ABOVE,)), 1, 0.5),
    ],
)
def test_overlap_counts_leading_equal_layers(query: Card, neighbour: Card, overlap: int, fraction: float) -> None:
    assert biased_overlap(query, neighbour) == overlap
    assert overlap_fraction(query, neighbour) == pytest.approx(fraction)
