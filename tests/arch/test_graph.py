"""The graph digest is equal just where networkx finds an isomorphism."""

import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import networkx as nx
import pytest
from numpy.random import Generator
from tests.arch.near_misses import near_miss
from tests.arch.random_cards import random_card
from tests.arch.rewriting import rewritten

from formwright.arch.card import Card
from formwright.arch.graph import Graph, graph_digest, graph_of
from formwright.arch.layers import Block, FrameEmbedding, Layer, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention, Identity
from formwright.core.rng import derive

PLAIN = Block(32, Attention(1, 8))
IDENTITY = Block(32, Identity())


def as_networkx(graph: Graph) -> "nx.DiGraph[int]":
    """Give a graph to networkx; parallel edges become one that lists their places, so that none is lost."""
    made: nx.DiGraph[int] = nx.DiGraph()
    made.add_nodes_from((node, {"is": label}) for node, label in enumerate(graph.labels))
    places: dict[tuple[int, int], list[int]] = {}
    for source, target, place in sorted(graph.edges):
        places.setdefault((source, target), []).append(place)
    made.add_edges_from((*ends, {"is": found}) for ends, found in places.items())
    return made


def isomorphic(first: Graph, second: Graph) -> bool:
    """Ask networkx, unless the labels or the number of edges already differ."""
    if Counter(first.labels) != Counter(second.labels) or len(first.edges) != len(second.edges):
        return False
    return bool(nx.is_isomorphic(as_networkx(first), as_networkx(second), operator.eq, operator.eq))


def random_pairs(rng: Generator, most_layers: int) -> Iterator[tuple[Card, Card]]:
    """Draw a design and a near miss, write each in two ways, and pair them: two same designs, two near misses."""
    card = random_card(rng, most_layers=most_layers)
    other = near_miss(card, rng)
    first, second = rewritten(card, rng), rewritten(card, rng)
    third, fourth = rewritten(other, rng), rewritten(other, rng)
    yield from ((first, second), (third, fourth), (first, third), (second, fourth))


def compare(rng: Generator, groups: int, most_layers: int) -> Counter[str]:
    """Compare the digest with networkx on four pairs a group, and count the outcomes."""
    outcomes: Counter[str] = Counter()
    for _ in range(groups):
        for first, second in random_pairs(rng, most_layers):
            same = isomorphic(graph_of(first), graph_of(second))
            assert (graph_digest(first) == graph_digest(second)) is same, (first.canonical, second.canonical)
            outcomes["isomorphic" if same else "different"] += 1
            outcomes["isomorphic, written differently"] += same and first != second
            outcomes["different, same labels"] += not same and _labels(first) == _labels(second)
    return outcomes


def _labels(card: Card) -> list[str]:
    return sorted(graph_of(card).labels)


def test_the_digest_is_equal_just_for_isomorphic_graphs_quickly() -> None:
    outcomes = compare(derive(0, "some pairs"), groups=150, most_layers=2)
    assert min(outcomes.values()) > 30


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_the_digest_is_equal_just_for_isomorphic_graphs(part: int) -> None:
    outcomes = compare(derive(0, "pairs", part), groups=625, most_layers=2)  # 4 parts of 625 x 4 pairs are 10,000
    assert outcomes["isomorphic"] + outcomes["different"] == 2500
    assert outcomes["isomorphic, written differently"] > 1000
    assert outcomes["different"] > 750
    assert outcomes["different, same labels"] > 150


@pytest.mark.slow
def test_the_digest_is_equal_just_for_isomorphic_graphs_of_deep_designs() -> None:
    outcomes = compare(derive(0, "deep pairs"), groups=125, most_layers=8)
    assert min(outcomes.values()) > 20


def flexibert(layers: int, heads: int, feed_forward: int) -> Card:
    block = Block(128, Attention(heads, 128 // heads), (512,) * feed_forward)
    return Card(Stack(TokenEmbedding(100, 128), (block,) * layers))


@pytest.mark.parametrize(
    ("card", "nodes", "edges"),
    [(flexibert(2, 2, 1), 12, 17), (flexibert(4, 4, 3), 38, 57)],
    ids=["BERT-Tiny", "the largest of FlexiBERT's space"],
)
def test_graphs_are_as_large_as_published(card: Card, nodes: int, edges: int) -> None:
    graph = graph_of(card)
    assert (len(graph.labels), len(graph.edges)) == (nodes, edges)


def test_nodes_stand_in_topological_order_between_input_and_output() -> None:
    rng = derive(0, "order")
    for _ in range(100):
        card = random_card(rng)
        graph = graph_of(card)
        assert all(source < target for source, target, _ in graph.edges)
        entered, left = {target for _, target, _ in graph.edges}, {source for source, _, _ in graph.edges}
        inputs = [label for node, label in enumerate(graph.labels) if node not in entered]
        assert len(inputs) == len(card.stacks)
        assert all(label.startswith(("encoder ", "decoder ")) for label in inputs)
        assert graph.labels[-1].startswith("output ")
        assert len(graph.labels) - 1 not in left


def seq2seq(encoder: list[Layer], depth: int) -> Card:
    above = Block(32, Attention(1, 8), cross=CrossAttention(1, 8, layers=depth))
    table = TokenEmbedding(100, 32)
    return Card(Stack(table, tuple(encoder)), Stack(table, (above,), causal=True))


def test_memory_is_read_where_the_layers_end() -> None:
    graph = graph_of(seq2seq([PLAIN, PLAIN, PLAIN], depth=2))
    (reader,) = [node for node, label in enumerate(graph.labels) if label.startswith("cross-attention")]
    ends = [node for node, label in enumerate(graph.labels) if label.startswith("add norm")]
    assert [(source, place) for source, target, place in graph.edges if target == reader] == [
        (ends[3], 0),  # the decoder's own state
        (ends[1], 1),
        (ends[2], 1),
    ]


def test_an_identity_layer_counts_only_for_those_who_count_layers() -> None:
    plain, behind = seq2seq([PLAIN, PLAIN], 1), seq2seq([PLAIN, PLAIN, IDENTITY], 1)
    assert graph_digest(plain) == graph_digest(behind)
    assert plain.digest != behind.digest
    assert graph_digest(seq2seq([PLAIN, PLAIN], 2)) != graph_digest(seq2seq([PLAIN, PLAIN, IDENTITY], 2))
    assert graph_digest(seq2seq([PLAIN, PLAIN], 2)) == graph_digest(seq2seq([IDENTITY, PLAIN, PLAIN], 2))


def test_what_is_not_a_layer_matters_too() -> None:
    card = Card(Stack(TokenEmbedding(100, 32), (PLAIN,)))
    assert card.encoder is not None
    others = [
        replace(card, pooler=True),
        replace(card, classes=2),
        replace(card, encoder=replace(card.encoder, causal=True)),
        replace(card, encoder=replace(card.encoder, final_norm=True)),
        replace(card, encoder=replace(card.encoder, embedding=TokenEmbedding(101, 32))),
        replace(card, encoder=replace(card.encoder, embedding=FrameEmbedding(100, 32))),
    ]
    assert len({graph_digest(other) for other in (card, *others)}) == 1 + len(others)
    assert graph_digest(replace(card, idle=9)) == graph_digest(card)  # what is never used is no part of the graph
