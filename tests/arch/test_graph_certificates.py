"""A certificate does not depend on the numbering of the nodes, and only isomorphic graphs share one."""

import itertools
import operator
from collections.abc import Sequence

import networkx as nx
import pytest
from numpy.random import Generator
from tests.arch.random_cards import pick

from formwright.arch.graph import Edge, certificate
from formwright.core.rng import derive

Drawn = tuple[list[str], list[Edge]]
AnyGraph = tuple[Sequence[str], Sequence[Edge]]


def renumbered(graph: Drawn, rng: Generator) -> Drawn:
    """Give the nodes other numbers and the edges another order."""
    labels, edges = graph
    place = [int(number) for number in rng.permutation(len(labels))]
    moved = [""] * len(labels)
    for node, label in enumerate(labels):
        moved[place[node]] = label
    shuffled = [edges[int(index)] for index in rng.permutation(len(edges))]
    return moved, [(place[source], place[target], operand) for source, target, operand in shuffled]


def random_graph(rng: Generator) -> Drawn:
    """Draw a small multigraph with few labels, so that many nodes look alike."""
    nodes = int(rng.integers(1, 7))
    labels = [pick(rng, "aab") for _ in range(nodes)]
    ends = rng.integers(nodes, size=(int(rng.integers(10)), 2))
    return labels, [(int(source), int(target), pick(rng, (0, 0, 1))) for source, target in ends]


def as_networkx(graph: AnyGraph) -> "nx.DiGraph[int]":
    labels, edges = graph
    made: nx.DiGraph[int] = nx.DiGraph()
    made.add_nodes_from((node, {"is": label}) for node, label in enumerate(labels))
    for source, target, place in sorted(edges):
        known = made.edges[source, target]["is"] if made.has_edge(source, target) else []
        made.add_edge(source, target, **{"is": [*known, place]})
    return made


def isomorphic(first: AnyGraph, second: AnyGraph) -> bool:
    return bool(nx.is_isomorphic(as_networkx(first), as_networkx(second), operator.eq, operator.eq))


def unlabelled(nodes: int, edges: Sequence[tuple[int, int]]) -> Drawn:
    return ["x"] * nodes, [(source, target, 0) for source, target in edges]


def cycles(*lengths: int) -> Drawn:
    """Draw directed cycles side by side."""
    rings = zip([sum(lengths[:index]) for index in range(len(lengths))], lengths, strict=True)
    return unlabelled(sum(lengths), [(start + i, start + (i + 1) % size) for start, size in rings for i in range(size)])


def both_ways(graph: Drawn) -> Drawn:
    return graph[0], graph[1] + [(target, source, place) for source, target, place in graph[1]]


def layered(graph: Drawn, label: str = "edge") -> Drawn:
    """Turn a graph into one without cycles: a node for each edge, which reads the two nodes that the edge joins.

    Labels are compared in their order: where `label` comes last, the nodes that read nothing are told apart first.
    """
    labels, edges = graph
    joints = [(node, len(labels) + index, 0) for index, (*ends, _) in enumerate(edges) for node in ends]
    return labels + [label] * len(edges), joints


def bipartite(left: int, right: int) -> Drawn:
    return unlabelled(left + right, [(i, left + j) for i in range(left) for j in range(right)])


def rook() -> Drawn:
    """Join the fields of a 4 x 4 board that lie in one row or one column."""
    pairs = itertools.permutations(itertools.product(range(4), repeat=2), 2)
    return unlabelled(16, [(4 * a + b, 4 * c + d) for (a, b), (c, d) in pairs if a == c or b == d])


def shrikhande() -> Drawn:
    """Draw the graph that every refinement of colours, even of pairs, confuses with the rook's."""
    steps = [(0, 1), (1, 0), (1, 1), (0, 3), (3, 0), (3, 3)]
    fields = itertools.product(range(4), repeat=2)
    return unlabelled(16, [(4 * a + b, 4 * ((a + c) % 4) + (b + d) % 4) for a, b in fields for c, d in steps])


SYMMETRIC = {
    "two triangles": cycles(3, 3),
    "hexagon": cycles(6),
    "two triangles, both ways": both_ways(cycles(3, 3)),
    "hexagon, both ways": both_ways(cycles(6)),
    "two triangles, layered": layered(cycles(3, 3)),
    "hexagon, layered": layered(cycles(6)),
    "two triangles, layered, sources first": layered(cycles(3, 3), "z"),
    "hexagon, layered, sources first": layered(cycles(6), "z"),
    "three squares": cycles(4, 4, 4),
    "square and octagon": cycles(4, 8),
    "four on four": bipartite(4, 4),
    "three on five": bipartite(3, 5),
    "cube": both_ways(unlabelled(8, [(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if i < i ^ bit])),
    "cube, layered": layered(unlabelled(8, [(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if i < i ^ bit])),
    "rook": rook(),
    "shrikhande": shrikhande(),
    "no edges": unlabelled(12, []),
}


@pytest.mark.parametrize(("nodes", "classes"), [(1, 1), (2, 3), (3, 16), (4, 218)])
def test_the_directed_graphs_of_a_size_are_told_apart_exactly(nodes: int, classes: int) -> None:
    # all of them, and the number of classes is known: oeis.org/A000273
    pairs = list(itertools.permutations(range(nodes), 2))
    choices = itertools.product((False, True), repeat=len(pairs))
    found = {certificate(*unlabelled(nodes, list(itertools.compress(pairs, chosen)))) for chosen in choices}
    assert len(found) == classes


def test_the_numbering_of_random_graphs_does_not_matter() -> None:
    rng = derive(0, "graphs")
    for _ in range(300):
        graph = random_graph(rng)
        assert certificate(*renumbered(graph, rng)) == certificate(*graph), graph


def test_random_graphs_share_a_certificate_just_when_networkx_says_so() -> None:
    rng = derive(1, "graphs")
    groups: dict[tuple[int, int], list[Drawn]] = {}
    for _ in range(500):
        graph = random_graph(rng)
        groups.setdefault((len(graph[0]), len(graph[1])), []).append(graph)
    outcomes = []
    for group in groups.values():
        for first, second in itertools.combinations(group, 2):
            outcomes.append(isomorphic(first, second))
            assert (certificate(*first) == certificate(*second)) is outcomes[-1], (first, second)
    assert outcomes.count(True) > 100
    assert outcomes.count(False) > 1000


@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_numbering_of_symmetric_graphs_does_not_matter(name: str) -> None:
    rng = derive(0, name)
    graph = SYMMETRIC[name]
    assert {certificate(*renumbered(graph, rng)) for _ in range(5)} == {certificate(*graph)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((["a", "b"], [(0, 1, 0)]), (["b", "a"], [(0, 1, 0)])),
        ((["a", "a"], [(0, 1, 0)]), (["a", "a"], [(0, 1, 1)])),
        ((["a", "a"], [(0, 1, 0)]), (["a", "a"], [(0, 1, 0), (0, 1, 0)])),
        ((["a", "a"], [(0, 1, 0), (0, 1, 0)]), (["a", "a"], [(0, 1, 0), (0, 1, 1)])),
        ((["a", "b", "c"], [(0, 2, 0), (1, 2, 1)]), (["a", "b", "c"], [(0, 2, 1), (1, 2, 0)])),
        ((["a"], []), (["a", "a"], [])),
        ((["a', 'b"], []), (["a", "b"], [])),
    ],
)
def test_labels_places_and_repeated_edges_matter(first: Drawn, second: Drawn) -> None:
    assert certificate(*first) != certificate(*second)


def test_certificates_tell_symmetric_graphs_apart_and_never_change() -> None:
    assert len({certificate(*graph) for graph in SYMMETRIC.values()}) == len(SYMMETRIC)
    assert (
        certificate(["a", "b"], [(0, 1, 0)]).hex() == "3775be3570970a3280f29243c5cf46c018fd0753a2c7a1f253b8195fd4f74e20"
    )


def balanced_tree(leaves: int) -> Drawn:
    """Add up many equal operations of one input in pairs, pairs of pairs, and so on."""
    labels, edges = ["entry", *["operation"] * leaves], [(0, 1 + leaf, 0) for leaf in range(leaves)]
    level = list(range(1, leaves + 1))
    while len(level) > 1:
        sums = list(range(len(labels), len(labels) + len(level) // 2))
        labels += ["add"] * len(sums)
        edges += [(node, sums[index // 2], 0) for index, node in enumerate(level)]
        level = sums
    return labels, edges


@pytest.mark.timeout(20)  # trying out every mirror image would take hours
@pytest.mark.parametrize("graph", [balanced_tree(32), bipartite(400, 1)], ids=["2 ** 31 mirror images", "400 twins"])
def test_many_mirror_images_cost_little_time(graph: Drawn) -> None:
    assert certificate(*renumbered(graph, derive(0, "mirror"))) == certificate(*graph)
