"""Canonical certificates of small labelled graphs: equal for isomorphic graphs and for no others.

Colours are refined from labels and neighbours until stable. Where equal colours remain, one node at a time is singled
out and the smallest certificate wins, so the result is exact and not merely a good hash.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

Edge = tuple[int, int, int]  # from, to, and the operand's place at the target (0 where order does not matter)
_Neighbours = list[list[tuple[int, int]]]


def certificate(labels: Sequence[str], edges: Sequence[Edge]) -> bytes:
    """Return a digest of a directed multigraph that depends on its isomorphism class only."""
    inward: _Neighbours = [[] for _ in labels]
    outward: _Neighbours = [[] for _ in labels]
    for source, target, place in edges:
        inward[target].append((place, source))
        outward[source].append((place, target))
    names = sorted(set(labels))
    colours = [bisect_left(names, label) for label in labels]
    order = _smallest(colours, inward, outward, edges)
    text = repr(([labels[node] for node in order], _numbered(order, edges)))
    return hashlib.sha256(text.encode()).digest()


def _by_colour(colours: list[int]) -> list[int]:
    return sorted(range(len(colours)), key=colours.__getitem__)


def _numbered(order: list[int], edges: Sequence[Edge]) -> tuple[Edge, ...]:
    rank = {node: position for position, node in enumerate(order)}
    return tuple(sorted((rank[source], rank[target], place) for source, target, place in edges))


def _smallest(colours: list[int], inward: _Neighbours, outward: _Neighbours, edges: Sequence[Edge]) -> list[int]:
    """Order the nodes so that their renumbered edges are smallest among all orders that the colours allow."""
    colours = _refined(colours, inward, outward)
    tied = _first_tie(colours)
    if not tied:
        return _by_colour(colours)
    if all(_twins(tied[0], node, inward, outward) for node in tied[1:]):
        # interchangeable nodes give the same certificate in whichever order they come
        return _smallest(_told_apart(colours, tied), inward, outward, edges)
    starts: dict[tuple[Edge, ...], list[int]] = {}
    for node in tied:
        # two starts that meet in one graph are mirror images of each other, and so is all that follows from them
        start = _singled_out(colours, node)
        starts.setdefault(_numbered(_any_order(start, inward, outward), edges), start)
    orders = [_smallest(start, inward, outward, edges) for start in starts.values()]
    return min(orders, key=lambda order: _numbered(order, edges))


def _any_order(colours: list[int], inward: _Neighbours, outward: _Neighbours) -> list[int]:
    """Order the nodes as the colours allow, taking the first of equals."""
    while tied := _first_tie(colours := _refined(colours, inward, outward)):
        colours = _singled_out(colours, tied[0])
    return _by_colour(colours)


def _refined(colours: list[int], inward: _Neighbours, outward: _Neighbours) -> list[int]:
    while True:
        signatures = [
            (
                colour,
                sorted((place, colours[source]) for place, source in inward[node]),
                sorted((place, colours[target]) for place, target in outward[node]),
            )
            for node, colour in enumerate(colours)
        ]
        ranked = sorted(signatures)
        finer = [bisect_left(ranked, signature) for signature in signatures]
        if len(set(finer)) == len(set(colours)):
            return finer
        colours = finer


def _first_tie(colours: list[int]) -> list[int]:
    first = min((colour for colour, nodes in Counter(colours).items() if nodes > 1), default=None)
    return [] if first is None else [node for node, colour in enumerate(colours) if colour == first]


def _twins(node: int, other: int, inward: _Neighbours, outward: _Neighbours) -> bool:
    return sorted(inward[node]) == sorted(inward[other]) and sorted(outward[node]) == sorted(outward[other])


def _singled_out(colours: list[int], node: int) -> list[int]:
    return [2 * colour + (other != node) for other, colour in enumerate(colours)]


def _told_apart(colours: list[int], tied: list[int]) -> list[int]:
    apart = [len(tied) * colour for colour in colours]
    for position, node in enumerate(tied):
        apart[node] += position
    return apart
