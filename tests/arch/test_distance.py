import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from tests.arch.random_cards import random_card

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockKind, ComputeBlock
from formwright.arch.distance import Alignment, BlockOrder, Distance, EditDistance, biased_overlap, overlap_fraction
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.graph import graph_of, segment
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention, CrossAttention, Identity
from formwright.core.rng import derive
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

KINDS: tuple[type[Distance], ...] = (EditDistance, Alignment)
LONG = ("autobert-zero",)  # takes two seconds to draw from for the first time
SLOW = (pytest.mark.slow,)
every_kind = pytest.mark.parametrize("kind", KINDS)
# ranks: input 0, output 1, add & norm 2, feed-forward 64 3, feed-forward 128 4, head 5
NARROW = Block(32, Attention(2, 16), (64,))
WIDE = Block(32, Attention(2, 16), (128,))
MANY = Block(32, Attention(4, 8), (64,))
DEEP = Block(32, Attention(2, 16), (64, 128, 64))
EXCHANGE = 1 + 4 * 0.1  # of NARROW and WIDE: one rank, and the edges to and from the feed-forward layer
WHOLE = 2 * 5 + 2 * 2 + 4 + 8 * 0.1  # of WIDE: its blocks and edges
ABOVE = replace(NARROW, cross=CrossAttention(2, 16))


def sampled(name: str, seed: int, number: int) -> list[Card]:
    space, rng = load_space(name), derive(seed, "sampled")
    return [space.card(space.sample(rng, "gene")) for _ in range(number)]


def check_metric(kind: type[Distance], cards: list[Card]) -> None:
    matrix = kind.of(cards).between(cards, cards)
    assert matrix.dtype == np.float32
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix, matrix.T)
    assert not np.diag(matrix).any()
    assert (matrix >= 0).all()
    detours = matrix[:, :, None] + matrix[None, :, :]  # (from, by way of, to)
    assert (matrix[:, None, :] <= detours * (1 + 1e-6)).all()


@every_kind
@given(st.sampled_from(["flexibert", "flexibert-nano", "flexibert-s1star"]), st.integers(0, 10**9))
def test_it_is_a_metric_on_flexibert(kind: type[Distance], name: str, seed: int) -> None:
    check_metric(kind, sampled(name, seed, 8))


@every_kind
@given(st.integers(0, 10**9))
def test_it_is_a_metric_on_random_designs_of_all_families(kind: type[Distance], seed: int) -> None:
    rng = derive(seed, "families")
    check_metric(kind, [random_card(rng) for _ in range(6)])


@every_kind
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW if name in LONG else ()) for name in SPACES.names()])
def test_it_is_a_metric_that_tells_designs_of_every_space_apart(kind: type[Distance], name: str) -> None:
    cards = sampled(name, 0, 12)
    check_metric(kind, cards)
    assert kind.of(cards).between(cards, cards).mean() > 1


@every_kind
def test_published_compressed_designs_have_distances(kind: type[Distance]) -> None:
    cards = [load_card(name) for name in CARDS.names() if name.startswith("eftnas")]
    check_metric(kind, cards)
    assert (kind.of(cards).between(cards, cards) + np.eye(len(cards)) > 0).all()


@every_kind
def test_pairs_and_parts_of_the_matrix_agree_with_the_whole(kind: type[Distance]) -> None:
    cards = sampled("flexibert-s1star", 1, 60)
    distance = kind.of(cards)
    whole = distance.between(cards, cards)
    left, right = derive(0, "pairs").integers(len(cards), size=(2, 500))
    assert np.array_equal(distance.pairs(cards, left, right), whole[left, right])
    assert np.array_equal(distance.between(cards[7:20], cards[50:]), whole[7:20, 50:])


@every_kind
@pytest.mark.parametrize("name", ["autobert-zero-nano", "evolved-transformer-nano", "hat"])
def test_cutting_the_work_into_small_parts_changes_nothing(kind, name, monkeypatch) -> None:
    cards = sampled(name, 2, 14)
    distance = kind.of(cards)
    left, right = derive(1, "pairs").integers(len(cards), size=(2, 30))
    whole, pairs = distance.between(cards, cards), distance.pairs(cards, left, right)
    assert np.array_equal(pairs, whole[left, right])
    for limit, value in {"_PAGE": 20, "_STRIP": 2, "_ALIGNED_PAIRS": 7, "_PAIRS": 7}.items():
        monkeypatch.setattr(f"formwright.arch.distance.{limit}", value)
    assert np.array_equal(distance.between(cards, cards), whole)
    assert np.array_equal(distance.pairs(cards, left, right), pairs)


@every_kind
def test_designs_unlike_those_it_was_made_of_are_measured_too(kind: type[Distance]) -> None:
    known, others = sampled("flexibert-nano", 3, 30), sampled("autobert-zero-nano", 3, 5)
    matrix = kind.of(known).between(others, known)
    assert matrix.shape == (5, 30)
    assert np.isfinite(matrix).all()
    assert (matrix > 0).all()


@every_kind
def test_nothing_has_no_distances(kind: type[Distance]) -> None:
    cards = sampled("flexibert-nano", 4, 3)
    distance, nothing = kind.of(cards), np.array([], np.intp)
    assert distance.between([], cards).shape == (0, 3)
    assert (distance.between(cards, []).shape, distance.between([], []).shape) == ((3, 0), (0, 0))
    assert distance.pairs(cards, nothing, nothing).shape == (0,)


def model(*layers: Layer) -> Card:
    return Card(Stack(TokenEmbedding(9, layers[0].width), layers))


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
    assert EditDistance.of([model(NARROW, WIDE)]).between([a], [b])[0, 0] == np.float32(distance)


def as_networkx(card: Card, order: BlockOrder) -> "nx.DiGraph[int]":
    """Give networkx the design's graph, with the rank of its block at each node."""
    layers = [layer for stack in card.stacks for layer in stack.layers]
    inside = [block for layer in layers for block in segment(layer).blocks]
    blocks = [ComputeBlock(BlockKind.INPUT), *inside, ComputeBlock(BlockKind.OUTPUT)]
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
    assert measure.between([a], [b])[0, 0] == pytest.approx(min(by_networkx(a, b, measure.order)) - rewiring)


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
    collections = {tuple(sorted(b for layer in card.stacks[0].layers for b in segment(layer).blocks)) for card in cards}
    landmarks = measure.between(cards, cards[::97])
    assert len(cards) == 9312
    assert len(collections) == len(np.unique(landmarks, axis=0)) == 3096


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.parametrize(("kind", "seconds"), [(EditDistance, 10), (Alignment, 60)])
def test_all_pairs_of_the_whole_space_take_little_time(kind: type[Distance], seconds: int) -> None:
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    started = time.process_time()
    assert kind.of(cards).between(cards, cards).shape == (9312, 9312)
    assert time.process_time() - started < seconds


def distance(a: Card, b: Card) -> float:
    return float(Alignment.of([model(NARROW, WIDE)]).between([a], [b])[0, 0])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (model(NARROW), model(WIDE), EXCHANGE),
        (model(NARROW), model(MANY), 2 * 5 + 4 * 0.1),
        (model(NARROW), model(NARROW, WIDE), WHOLE),
        (model(NARROW), model(WIDE, NARROW, WIDE), 2 * WHOLE),
        (model(NARROW, WIDE), model(WIDE, NARROW), 2 * EXCHANGE),
        (model(NARROW, Block(32, Identity()), WIDE), model(NARROW, WIDE), 0.0),
        (model(Block(32, Attention(2, 16), (64, 128))), model(Block(32, Attention(2, 16), (128, 64))), 6 * 0.1),
    ],
)
def test_alignments_worked_out_by_hand(a: Card, b: Card, expected: float) -> None:
    assert distance(a, b) == pytest.approx(expected, rel=1e-6)


def test_layers_are_aligned_within_their_stacks() -> None:
    heavy, light = Block(32, Attention(32, 1), (64,)), Block(32, Attention(1, 32))
    shifted = distance(model(light, heavy, heavy), model(heavy, heavy, light))
    assert shifted == pytest.approx(2 * (5 + 2 + 3 * 0.1))
    table = TokenEmbedding(9, 32)
    encoder, decoder = Card(Stack(table, (WIDE,))), Card(decoder=Stack(table, (WIDE,), causal=True))
    assert distance(encoder, decoder) == pytest.approx(2 * WHOLE)
    table = TokenEmbedding(9, 32)
    one, two = (Card(decoder=Stack(table, (NARROW, WIDE)[:depth], causal=True)) for depth in (1, 2))
    measure = EditDistance.of([two])
    assert measure.between([one], [two]) == measure.between([model(NARROW)], [model(NARROW, WIDE)])
    assert measure.between([one], [model(NARROW)]) == 0


def by_recursion(a: tuple[Layer, ...], b: tuple[Layer, ...]) -> float:
    """Align two lists of layers in the plainest way, pricing layers as designs of one layer."""
    layers = sorted({*a, *b}, key=repr)
    alone = [model(layer) for layer in layers]
    whole = model(*a, *b)
    turning = Alignment.of([whole]).between(alone, alone)
    # a list of no layer cannot be a design, but n + 1 equal layers differ from one by n whole ones
    removing = {layer: Alignment.of([whole]).between([model(layer)], [model(layer, layer)])[0, 0] for layer in layers}

    @cache
    def rest(i: int, j: int) -> float:
        if i == len(a) or j == len(b):
            return float(sum(removing[layer] for layer in (*a[i:], *b[j:])))
        turned = turning[layers.index(a[i]), layers.index(b[j])] + rest(i + 1, j + 1)
        return float(min(turned, removing[a[i]] + rest(i + 1, j), removing[b[j]] + rest(i, j + 1)))

    return rest(0, 0)


@given(st.integers(0, 10**9))
def test_it_agrees_with_a_plain_recursion(seed: int) -> None:
    space, rng = load_space("flexibert-s1star"), derive(seed, "recursion")
    a, b = (space.card(space.sample(rng, "gene")).stacks[0].layers for _ in range(2))
    found = Alignment.of([model(*a, *b)]).between([model(*a)], [model(*b)])[0, 0]
    assert found == pytest.approx(by_recursion(a, b), rel=1e-5)


@given(st.integers(0, 10**9))
def test_it_is_never_below_the_edit_distance(seed: int) -> None:
    rng = derive(seed, "bound")
    cards = [random_card(rng) for _ in range(6)]
    assert (Alignment.of(cards).between(cards, cards) >= EditDistance.of(cards).between(cards, cards)).all()


def test_swapped_stacks_are_told_apart_throughout_the_space() -> None:
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    listed = {card.stacks[0].layers: card for card in cards if len(card.stacks[0].layers) == 4}
    mixed = [layers for layers in listed if layers[0] != layers[2]]
    measured = [listed[layers] for layers in mixed] + [listed[layers[2:] + layers[:2]] for layers in mixed]
    number = np.arange(len(mixed))
    assert len(mixed) == 96 * 95
    assert Alignment.of(cards).pairs(measured, number, number + len(mixed)).min() > 1
    assert not EditDistance.of(cards).pairs(measured, number, number + len(mixed)).any()


def test_only_equal_layers_are_at_distance_0() -> None:
    stacks = [stack for depth in (1, 3) for stack in product((64, 128), repeat=depth)]
    layers = [Block(32, Attention(heads, 32 // heads), stack) for heads in (2, 4) for stack in stacks]
    cards = [model(layer) for layer in layers]
    matrix = Alignment.of(cards).between(cards, cards)
    assert len(cards) == 20
    assert (matrix + np.eye(len(cards)) > 0).all()


def both(encoder_layers: tuple[Layer, ...], decoder_layers: tuple[Layer, ...]) -> Card:
    table = TokenEmbedding(9, 32)
    return Card(encoder=Stack(table, encoder_layers), decoder=Stack(table, decoder_layers, causal=True))


@pytest.mark.parametrize(
    ("query", "neighbour", "overlap", "fraction"),
    [
        (model(NARROW, NARROW, WIDE, WIDE), model(NARROW, NARROW, WIDE, WIDE), 4, 1.0),
        # what agrees after the first difference does not count
        (model(NARROW, NARROW, WIDE, WIDE), model(NARROW, NARROW, NARROW, WIDE), 2, 0.5),
        (model(NARROW, NARROW, WIDE, WIDE), model(WIDE, NARROW, WIDE, WIDE), 0, 0.0),
        (model(NARROW, NARROW), model(NARROW, NARROW, WIDE, WIDE), 2, 1.0),
        (model(NARROW, NARROW, WIDE, WIDE), model(NARROW, NARROW), 2, 0.5),  # the fraction is of the query's layers
        (both((NARROW, WIDE), (ABOVE,)), both((NARROW, WIDE), (ABOVE, ABOVE)), 3, 1.0),
        (both((NARROW, WIDE), (ABOVE,)), both((NARROW, NARROW), (ABOVE,)), 1, 1 / 3),
        (both((NARROW,), (ABOVE,)), both((NARROW, WIDE), (ABOVE,)), 1, 0.5),
    ],
)
def test_overlap_counts_leading_equal_layers(query: Card, neighbour: Card, overlap: int, fraction: float) -> None:
    assert biased_overlap(query, neighbour) == overlap
    assert overlap_fraction(query, neighbour) == pytest.approx(fraction)
