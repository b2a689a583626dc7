"""The graph digest is equal just where networkx finds an isomorphism."""

import operator
from collections import Counter

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


def random_pair(rng: Generator) -> tuple[Card, Card]:
    """Draw two ways of writing one design, or of writing it and a near miss."""
    card = random_card(rng)
    other = near_miss(card, rng) if rng.random() < 0.5 else card
    return rewritten(card, rng), rewritten(other, rng)
