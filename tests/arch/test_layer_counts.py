import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.arch.random_cards import random_card

from formwright.arch.block_order import BlockOrder
from formwright.arch.card import Card
from formwright.arch.compute_blocks import blocks_of
from formwright.arch.graph import graph_of
from formwright.arch.layer_counts import UNIT, LayerCounts
from formwright.arch.layer_lists import LayerLists
from formwright.arch.layers import Layer
from formwright.core.rng import derive


def padded_difference(a: Layer, b: Layer, order: BlockOrder) -> int:
    """Sort both collections of ranks, fill the shorter up with 0, and add the differences."""
    left, right = (sorted(map(order.rank, blocks_of(layer)), reverse=True) for layer in (a, b))
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
        assert counted.sizes[n] == UNIT * sum(map(order.rank, blocks_of(a))) + counted.counts[n, -1]
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
