import numpy as np

from formwright.arch.card import Card
from formwright.arch.layer_lists import LayerLists
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention

A, B, C = (Block(16, Attention(heads, 8)) for heads in (1, 2, 3))


def stack(*layers: Layer, causal: bool = False) -> Stack:
    return Stack(TokenEmbedding(9, 16), layers, causal=causal)


def test_each_layer_is_listed_once_and_lists_are_filled_up() -> None:
    cards = [Card(stack(A, B, A)), Card(decoder=stack(C, B, causal=True)), Card(stack(B))]
    lists = LayerLists.of(cards)
    named = [None, *lists.layers]
    assert len(set(lists.layers)) == len(lists.layers) == 3
    assert [[named[number] for number in row] for row in lists.encoders] == [[A, B, A], [None] * 3, [B, None, None]]
    assert [[named[number] for number in row] for row in lists.decoders] == [[None, None], [C, B], [None, None]]


def test_what_nobody_has_takes_no_room() -> None:
    assert LayerLists.of([Card(stack(A)), Card(stack(B))]).decoders.shape == (2, 0)
    empty = LayerLists.of([])
    assert empty.layers == ()
    assert empty.encoders.shape == empty.decoders.shape == (0, 0)
    assert empty.encoders.dtype == np.intp
