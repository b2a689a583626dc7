"""Path encoding (White et al., 2021): a design as the set of ways through its computation graph.

Every residual part multiplies the ways through a whole model by two, and nearly all of them are found in one design
only. So the graph is cut wherever all ways meet in one node, and the ways through each piece are taken instead, told
apart by the place of the piece: a way through the whole is a way through each piece, so that nothing is lost.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.graph import Graph, graph_of
from formwright.core.rng import derive
from formwright.search.listing import Place
from formwright.space import Space

Floats = NDArray[np.float64]
Source = tuple[int, int]  # a node, and which operand it is
Path = tuple[int, int]  # its length, and a code of the labels on the way

MOST = 64  # paths kept of one piece, shortest first
COLUMNS = 256
ENTRY = -1
SAMPLE = 512
_MIX = 0x9E3779B97F4A7C15  # odd, so that no two codes become one
_MASK = 2**64 - 1


@lru_cache(maxsize=8)
def path_encoding(space: Space, columns: int = COLUMNS) -> Place:
    """Return what places designs by their paths: 1 in the column of each path that a design has.

    The columns are the commonest paths of the space, without those that all designs have.
    """
    rng = derive(0, "paths", space.name)
    counts = Counter(code for _ in range(SAMPLE) for code in path_codes(space.card(space.sample(rng, "gene"))))
    commonest = sorted((-count, code) for code, count in counts.items() if count < SAMPLE)[:columns]
    column = {code: index for index, (_, code) in enumerate(commonest)}

    def place(designs: Sequence[Any], cards: Sequence[Card]) -> Floats:
        points = np.zeros((len(cards), len(column)))
        for point, card in zip(points, cards, strict=True):
            point[[column[code] for code in path_codes(card) if code in column]] = 1.0
        return points

    return place


@lru_cache(maxsize=1 << 14)
def path_codes(card: Card) -> tuple[int, ...]:
    """Return a code for each path through each piece of a design's graph; they are the same in every process."""
    graph = graph_of(card)
    sources = _sources(graph)
    codes: list[int] = []
    for place, (start, end) in enumerate(pairwise(_cuts(sources))):
        codes += [code for _, code in _paths(graph.labels, sources, start, end, place)]
    return tuple(codes)


def _sources(graph: Graph) -> list[list[Source]]:
    """List the sources of each node; inputs have the one source `ENTRY`."""
    sources: list[list[Source]] = [[] for _ in graph.labels]
    for source, target, place in graph.edges:
        sources[target].append((source, place))
    return [found or [(ENTRY, 0)] for found in sources]


def _cuts(sources: list[list[Source]]) -> list[int]:
    """List the nodes that every path passes, from the entry to the output."""
    farthest = ENTRY  # node that the edges out of the nodes before lead to
    reach = {source: target for target, found in enumerate(sources) for source, _ in found}
    cuts = []
    for node in range(ENTRY, len(sources)):
        if farthest <= node:
            cuts.append(node)
        farthest = max(farthest, reach.get(node, node))
    return cuts


def _paths(labels: Sequence[str], sources: list[list[Source]], start: int, end: int, place: int) -> list[Path]:
    """Return the shortest paths from a cut to the next one."""
    ways: dict[int, list[Path]] = {start: [(0, place)]}
    for node in range(start + 1, end + 1):
        label = _code(labels[node])
        found = {
            (length + 1, ((code + operand) * _MIX & _MASK) ^ label)
            for source, operand in sources[node]
            for length, code in ways[source]
        }
        ways[node] = sorted(found)[:MOST]
    return ways[end]


@lru_cache(maxsize=1 << 12)
def _code(label: str) -> int:
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "little")
