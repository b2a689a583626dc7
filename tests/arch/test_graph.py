"""The graph digest is equal just where networkx finds an isomorphism."""

import operator
from collections import Counter
from collections.abc import Iterator

import networkx as nx
import pytest
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.arch.graph import Graph, graph_digest, graph_of
from formwright.core.rng import derive
from tests.arch.near_misses import near_miss
from tests.arch.random_cards import random_card
from tests.arch.rewriting import rewritten


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


@pytest.mark.parametrize("part", range(4))
def test_the_digest_is_equal_just_for_isomorphic_graphs(part: int) -> None:
    outcomes = compare(derive(0, "pairs", part), groups=625, most_layers=2)  # 4 x 625 x 4 pairs are 10,000
    assert outcomes["isomorphic"] + outcomes["different"] == 2500
    assert outcomes["isomorphic, written differently"] > 1000
    assert outcomes["different"] > 750
    assert outcomes["different, same labels"] > 150


@pytest.mark.slow
def test_the_digest_is_equal_just_for_isomorphic_graphs_of_deep_designs() -> None:
    outcomes = compare(derive(0, "deep pairs"), groups=125, most_layers=8)
    assert min(outcomes.values()) > 20
