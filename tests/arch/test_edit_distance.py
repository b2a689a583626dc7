from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.arch.whole_space import seconds_for_all_pairs

from formwright.arch.block_order import BlockOrder
from formwright.arch.card import Card
from formwright.arch.compute_blocks import INPUT, OUTPUT, blocks_of
from formwright.arch.edit_distance import EditDistance
from formwright.arch.graph import graph_of
from formwright.arch.layers import Block, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.rng import derive
from formwright.space.zoo import load_space

# ranks: input 0, output 1, add & norm 2, feed-forward 64 3, feed-forward 128 4, head 5
NARROW = Block(32, Attention(2, 16), (64,))
WIDE = Block(32, Attention(2, 16), (128,))
MANY = Block(32, Attention(4, 8), (64,))
DEEP = Block(32, Attention(2, 16), (64, 128, 64))


def model(*layers: Layer) -> Card:
    return Card(Stack(TokenEmbedding(9, 32), layers))


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (model(NARROW), model(WIDE), 1.0),  # one block exchanged for the next
        (model(NARROW), model(MANY), 2 * 5 + 4 * 0.1),  # two heads, each with two edges
        (model(NARROW), model(DEEP), 3 + 4 + 2 * 0.1),  # two layers in a chain
        (model(WIDE), model(DEEP), 3 + 3 + 2 * 0.1),
        (model(NARROW), model(NARROW, WIDE), 2 * 5 + 2 * 2 + 4 + 8 * 0.1),  # a whole layer
        (model(NARROW, WIDE), model(WIDE, NARROW), 0.0),  # order is not seen
    ],
)
def test_distances_worked_out_by_hand(a: Card, b: Card, distance: float) -> None:
    measure = EditDistance.of([model(NARROW, WIDE)])
    assert measure.between([a], [b])[0, 0] == np.float32(distance)


def test_layers_of_a_decoder_count_like_those_of_an_encoder() -> None:
    table = TokenEmbedding(9, 32)
    one, two = (Card(decoder=Stack(table, (NARROW, WIDE)[:depth], causal=True)) for depth in (1, 2))
    measure = EditDistance.of([two])
    assert measure.between([one], [two]) == measure.between([model(NARROW)], [model(NARROW, WIDE)])
    assert measure.between([one], [model(NARROW)]) == 0


def as_networkx(card: Card, order: BlockOrder) -> "nx.DiGraph[int]":
    """Give networkx the design's graph, with the rank of its block at each node."""
    layers = [layer for stack in card.stacks for layer in stack.layers]
    blocks = [INPUT, *(block for layer in layers for block in blocks_of(layer)), OUTPUT]
    made: nx.DiGraph[int] = nx.DiGraph()
    made.add_nodes_from((node, {"rank": order.rank(block)}) for node, block in enumerate(blocks))
    made.add_edges_from((source, target) for source, target, _ in graph_of(card).edges)
    return made


def by_networkx(a: Card, b: Card, order: BlockOrder) -> Iterator[float]:
    """Give better and better distances; FlexiBERT's authors take the first."""
    costs: dict[str, Callable[..., Any]] = {
        "node_subst_cost": lambda one, other: abs(one["rank"] - other["rank"]),
        "node_del_cost": lambda node: node["rank"],
        "node_ins_cost": lambda node: node["rank"],
        "edge_del_cost": lambda edge: 0.1,
        "edge_ins_cost": lambda edge: 0.1,
    }
    yield from nx.optimize_graph_edit_distance(as_networkx(a, order), as_networkx(b, order), **costs)


@pytest.mark.parametrize(("other", "rewiring"), [(WIDE, 0.0), (MANY, 0.0), (DEEP, 0.2)])
def test_it_is_the_best_that_networkx_finds_where_no_edge_is_moved(other: Block, rewiring: float) -> None:
    measure = EditDistance.of([model(NARROW, WIDE)])
    a, b = model(NARROW), model(other)
    best = min(by_networkx(a, b, measure.order))
    assert measure.between([a], [b])[0, 0] == pytest.approx(best - rewiring)


@pytest.mark.slow
def test_it_follows_networkx_and_is_never_above_it() -> None:
    space, rng = load_space("flexibert"), derive(0, "networkx")
    cards = [space.card(space.sample(rng, "gene")) for _ in range(80)]
    measure = EditDistance.of(cards)
    ours = measure.pairs(cards, np.arange(40), np.arange(40, 80))
    theirs = [next(by_networkx(a, b, measure.order)) for a, b in zip(cards[:40], cards[40:], strict=True)]
    assert (ours <= np.array(theirs) + 1e-4).all()
    assert spearmanr(ours, theirs).statistic >= 0.99


def test_whole_space_has_as_many_places_as_collections_of_blocks() -> None:
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    measure = EditDistance.of(cards)
    collections = {tuple(sorted(b for layer in card.stacks[0].layers for b in blocks_of(layer))) for card in cards}
    landmarks = measure.between(cards, cards[::97])
    assert len(cards) == 9312
    assert len(collections) == len(np.unique(landmarks, axis=0)) == 3096


@pytest.mark.long
@pytest.mark.slow
def test_all_pairs_of_the_whole_space_take_less_than_ten_seconds() -> None:
    assert seconds_for_all_pairs(EditDistance) < 10
