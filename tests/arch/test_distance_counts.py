import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from tests.arch.random_cards import random_card

from formwright.arch.card import Card
from formwright.arch.distance import UNIT, BlockOrder, Floats, LayerCounts, LayerLists, manhattan, manhattan_pairs
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.graph import graph_of, segment
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention
from formwright.core.rng import derive

A, B, C = (Block(16, Attention(heads, 8)) for heads in (1, 2, 3))


def drawn(seed: int, rows: int, columns: int, width: int) -> tuple[Floats, Floats, Floats]:
    rng = derive(seed, "manhattan")
    counts = rng.integers(0, rng.integers(1, 9, size=width), size=(rows + columns, width)).astype(np.float32)
    counts += rng.integers(0, 3, size=width).astype(np.float32)
    return counts[:rows], counts[rows:], rng.integers(0, 20, size=width).astype(np.float32)


@given(st.integers(0, 10**9), st.integers(0, 7), st.integers(0, 7), st.integers(1, 9))
def test_it_agrees_with_scipy_exactly(seed: int, rows: int, columns: int, width: int) -> None:
    left, right, weights = drawn(seed, rows, columns, width)
    found = manhattan(left, right, weights)
    assert found.dtype == np.float32
    assert np.array_equal(found, cdist(left * weights, right * weights, "cityblock"))


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_pairs_are_the_diagonal(rows: int) -> None:
    left, right, weights = drawn(1, rows, rows, 6)
    assert np.array_equal(manhattan_pairs(left, right, weights), np.diag(manhattan(left, right, weights)))


def stack(*layers: Layer, causal: bool = False) -> Stack:
    return Stack(TokenEmbedding(9, 16), layers, causal=causal)


def test_layers_are_listed_once_and_rows_done_in_strips() -> None:
    left, right, weights = drawn(0, 1_100, 3, 5)
    assert np.array_equal(manhattan(left, right, weights), cdist(left * weights, right * weights, "cityblock"))
    cards = [Card(stack(A, B, A)), Card(decoder=stack(C, B, causal=True)), Card(stack(B))]
    lists = LayerLists.of(cards)
    named = [None, *lists.layers]
    assert len(set(lists.layers)) == len(lists.layers) == 3
    assert [[named[number] for number in row] for row in lists.encoders] == [[A, B, A], [None] * 3, [B, None, None]]
    assert [[named[number] for number in row] for row in lists.decoders] == [[None, None], [C, B], [None, None]]
    assert LayerLists.of([Card(stack(A)), Card(stack(B))]).decoders.shape == (2, 0)
    empty = LayerLists.of([])
    assert empty.layers == ()
    assert empty.encoders.shape == empty.decoders.shape == (0, 0)
    assert empty.encoders.dtype == np.intp


def padded_difference(a: Layer, b: Layer, order: BlockOrder) -> int:
    """Sort both collections of ranks, fill the shorter up with 0, and add the differences."""
    left, right = (sorted(map(order.rank, segment(layer).blocks), reverse=True) for layer in (a, b))
    longest = max(len(left), len(right))
    left, right = (ranks + [0] * (longest - len(ranks)) for ranks in (left, right))
    return sum(abs(i - j) for i, j in zip(left, right, strict=True))


@given(st.integers(0, 10**9))
def test_differences_of_counts_are_the_cost_of_blocks_and_edges(seed: int) -> None:
    rng = derive(seed, "counts")
    cards = [random_card(rng), random_card(rng)]
    order, lists = BlockOrder.of(cards), LayerLists.of(cards)
    counted = LayerCounts.by_number(lists.layers, order)
    for n, a in enumerate(lists.layers, 1):
        for m, b in enumerate(lists.layers, 1):
            difference = np.abs(counted.counts[n] - counted.counts[m])
            edges = difference[-1]  # the last column counts edges, which cost a tenth
            assert difference @ counted.weights == UNIT * padded_difference(a, b, order) + edges
        assert counted.sizes[n] == UNIT * sum(map(order.rank, segment(a).blocks)) + counted.counts[n, -1]
    assert not counted.counts[0].any()


@given(st.integers(0, 10**9))
def test_every_edge_of_the_graph_is_counted_both_ways(seed: int) -> None:
    card: Card = random_card(derive(seed, "edges"))
    order, lists = BlockOrder.of([card]), LayerLists.of([card])
    standing = [*lists.encoders.ravel(), *lists.decoders.ravel()]
    by_number = LayerCounts.by_number(lists.layers, order)
    by_ends = LayerCounts.by_ends(lists.layers, order)
    edges = len(graph_of(card).edges) - 1  # without the one to the output
    assert by_number.counts[standing, -1].sum() == edges
    assert by_ends.counts[standing][:, by_ends.weights == 1].sum() == edges
    ranks = len(order.blocks) - 1
    assert np.array_equal(by_number.counts[:, :ranks], by_ends.counts[:, :ranks])
