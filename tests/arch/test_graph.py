import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import networkx as nx
import pytest
from numpy.random import Generator
from tests.arch.near_misses import near_miss
from tests.arch.random_cards import random_card, random_cell, random_layer
from tests.arch.rewriting import merged, rewritten, rewritten_layer, split

from formwright.arch.canonical import certificate
from formwright.arch.card import Card
from formwright.arch.graph import Graph, graph_digest, graph_of, has_formulas, pieces, plain_digest, segment
from formwright.arch.layers import Block, Branch, Cell, FrameEmbedding, Junction, Layer, Stack, TokenEmbedding
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    Mixer,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.arch.primitives import Term
from formwright.core.rng import derive
from formwright.space.zoo import load_card

NORMED = Branch(0, Identity(), 32, norm=True)
DENSE = Branch(0, Convolution(), 32)
WIDE = Branch(0, Convolution(3), 64, activation="relu")
PLAIN = Block(32, Attention(1, 8))
IDENTITY = Block(32, Identity())
SCORES: Term = ("matmul", "Q", ("transpose", "K"))


def block(mixer: Mixer, cross: CrossAttention | None = None) -> Block:
    return Block(32, mixer, cross=cross)


def test_a_block_after_the_norm() -> None:
    drawn = segment(Block(32, Attention(2, 16), (64, 48), "relu"))
    head = 'attention 32>32 {"head_width":16}'
    assert drawn.labels == (
        "",
        head,
        head,
        "add norm 32",
        "feed-forward 32>64 relu",
        "feed-forward 64>48 relu",
        "add norm 32",
    )
    assert set(drawn.edges) == {(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 3, 0), (2, 3, 0)} | {
        (3, 4, 0),
        (4, 5, 0),
        (5, 6, 0),
        (3, 6, 0),
    }
    assert drawn.reads == ()


def test_a_block_before_the_norm_and_with_cross_attention() -> None:
    drawn = segment(Block(32, Identity(), (64,), norm="pre"))
    assert drawn.labels == ("", "norm 32", "feed-forward 32>64 gelu", "add 32")
    assert set(drawn.edges) == {(0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 3, 0)}
    drawn = segment(Block(32, Identity(), cross=CrossAttention(2, 16, layers=3)))
    assert drawn.labels[1:3] == ('cross-attention 32>32 {"head_width":16,"layers":3}',) * 2
    assert drawn.reads == ((1, 3), (2, 3))
    cell = Cell(32, (Junction(DENSE, Branch(0, CrossAttention(2, 16, layers=2), 32)),))
    assert segment(cell).reads == ((2, 2),)


@pytest.mark.parametrize("layer", [Block(32, Identity()), Cell(32, (Junction(Branch(0, Identity(), 32)),))])
def test_identity_draws_nothing(layer: Layer) -> None:
    assert (segment(layer).labels, segment(layer).edges, pieces(layer)) == (("",), (), ())


@pytest.mark.parametrize(
    ("mixer", "heads"),
    [
        (Attention(3, 16), 3),
        (DynamicConvolution(3, 4, 8), 4),
        (Transform("dct", RelativeAttention(2, 16, 9)), 2),
        (Transform("dct"), 1),
        (SeparableConvolution(3), 1),
        (LightweightConvolution(3, 4), 1),
    ],
)
def test_parallel_heads_are_parallel_nodes(mixer: Mixer, heads: int) -> None:
    drawn = segment(Block(32, mixer))
    assert (len(drawn.labels), len(set(drawn.labels[1:-1]))) == (heads + 2, 1)


def test_an_op_graph_is_drawn_simplified_with_common_parts_once() -> None:
    twice = ("matmul", ("cosine", ("softsign", "Q"), ("softsign", "Q")), "V")
    drawn = segment(Block(32, OpGraph(2, 8, twice)))
    assert sorted(drawn.labels) == sorted(
        ["", *["project 32>2x8"] * 2, "softsign 2x8", "cosine 2x8", "matmul 2x8", "project 2x8>32", "add norm 32"]
    )
    common, similarity = drawn.labels.index("softsign 2x8"), drawn.labels.index("cosine 2x8")
    assert [edge for edge in drawn.edges if edge[1] == similarity] == [(common, similarity, 0), (common, similarity, 1)]
    plain = segment(block(OpGraph(2, 8, ("matmul", ("cosine", "Q", "K"), "V"))))
    assert segment(block(OpGraph(2, 8, ("neg", ("matmul", ("cosine", ("neg", "Q"), "K"), "V"))))) == plain
    assert segment(block(OpGraph(2, 8, ("neg", ("neg", "Q"))))).labels[1:3] == ("project 32>2x8", "project 2x8>32")


def test_a_cell_draws_its_branches_and_joints() -> None:
    cell = Cell(32, (Junction(DENSE, WIDE, "concatenate"), Junction(NORMED, Branch(1, Identity(), 96), "multiply")))
    drawn = segment(cell)
    assert drawn.labels == (
        "",
        "convolution 32>32 {} no norm no activation",
        'convolution 32>64 {"kernel":3} no norm relu',
        "concatenate 96",
        "identity 32>32 {} norm no activation",
        "multiply 96",
    )
    assert drawn.edges == ((0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 1), (0, 4, 0), (4, 5, 0), (3, 5, 0))


# (K - Q)(V - P)ᵀ, which is the same with Q for K and P for V
DIFFERENCES = ("matmul", ("add", "K", ("neg", "Q")), ("transpose", ("add", "V", ("neg", "P"))))


SAME: dict[str, tuple[Layer, Layer]] = {
    "branches of an addition": (Cell(32, (Junction(DENSE, WIDE),)), Cell(32, (Junction(WIDE, DENSE),))),
    "branches of a product": (
        Cell(32, (Junction(DENSE, WIDE, "multiply"),)),
        Cell(32, (Junction(WIDE, DENSE, "multiply"),)),
    ),
    "names of inputs": (
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "P", "Q"), "K"))),
    ),
    "operands of an addition": (
        block(OpGraph(1, 8, ("add", "Q", ("neg", "K")))),
        block(OpGraph(1, 8, ("add", ("neg", "Q"), "K"))),
    ),
    "brackets of a sum": (
        block(OpGraph(1, 8, ("add", "Q", ("add", "K", ("softmax", "V"))))),
        block(OpGraph(1, 8, ("add", ("add", "Q", ("softmax", "V")), "K"))),
    ),
    "which of two differences is turned round, whatever the names": (
        block(OpGraph(1, 8, ("add", "Q", ("matmul", DIFFERENCES, "V")))),
        block(OpGraph(1, 8, ("add", "K", ("matmul", DIFFERENCES, "P")))),
    ),
    "order of junctions": (
        Cell(32, (Junction(DENSE), Junction(WIDE), Junction(Branch(1, Identity(), 32), Branch(2, Identity(), 64)))),
        Cell(32, (Junction(WIDE), Junction(DENSE), Junction(Branch(2, Identity(), 32), Branch(1, Identity(), 64)))),
    ),
}


ATTENTION = Block(32, Attention(2, 16), (64,))


DIFFERENT: dict[str, tuple[Layer, Layer]] = {
    "width": (ATTENTION, replace(ATTENTION, width=64)),
    "feed-forward width": (ATTENTION, replace(ATTENTION, feed_forward=(65,))),
    "feed-forward order": (replace(ATTENTION, feed_forward=(64, 48)), replace(ATTENTION, feed_forward=(48, 64))),
    "activation": (ATTENTION, replace(ATTENTION, activation="relu")),
    "norm": (ATTENTION, replace(ATTENTION, norm="pre")),
    "heads": (ATTENTION, replace(ATTENTION, mixer=Attention(3, 16))),
    "head width": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 8))),
    "score": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 16, "wma"))),
    "relative positions": (ATTENTION, replace(ATTENTION, mixer=Attention(2, 16, relative=Relative(9)))),
    "mixer or cross": (ATTENTION, replace(ATTENTION, mixer=Identity(), cross=CrossAttention(2, 16))),
    "memory depth": (
        block(Identity(), CrossAttention(1, 8, layers=1)),
        block(Identity(), CrossAttention(1, 8, layers=2)),
    ),
    "kernel": (block(SeparableConvolution(3)), block(SeparableConvolution(5))),
    "transform": (block(Transform("dct")), block(Transform("dft"))),
    "lightweight heads": (block(LightweightConvolution(3, 4)), block(LightweightConvolution(3, 8))),
    "order of a product": (
        block(OpGraph(1, 8, ("matmul", ("cosine", ("softsign", "Q"), "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "K", ("softsign", "Q")), "V"))),
    ),
    "one input or two": (
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "V"))),
        block(OpGraph(1, 8, ("matmul", ("cosine", "Q", "K"), "Q"))),
    ),
    "order of a concatenation": (
        Cell(32, (Junction(DENSE, WIDE, "concatenate"),)),
        Cell(32, (Junction(WIDE, DENSE, "concatenate"),)),
    ),
    "combination": (Cell(32, (Junction(DENSE, WIDE),)), Cell(32, (Junction(DENSE, WIDE, "multiply"),))),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter(name: str) -> None:
    first, second = SAME[name]
    assert first != second
    assert pieces(first) == pieces(second)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_matters(name: str) -> None:
    first, second = DIFFERENT[name]
    assert pieces(first) != pieces(second)


def test_an_ordinary_block_is_cut_between_its_parts() -> None:
    mixer, feed_forward = pieces(ATTENTION)
    assert pieces(replace(ATTENTION, feed_forward=())) == (mixer,)
    assert pieces(replace(ATTENTION, mixer=Identity())) == (feed_forward,)


def test_pieces_do_not_depend_on_the_division_into_cells() -> None:
    rng = derive(0, "divisions")
    parted = 0
    for _ in range(200):
        cell, above = random_cell(rng, 32), random_cell(rng, 32)
        divided = split(cell, rng)
        parted += len(divided) > 1
        assert [piece for part in divided for piece in pieces(part)] == list(pieces(cell))
        assert [piece for part in merged([cell, above], rng) for piece in pieces(part)] == [
            *pieces(cell),
            *pieces(above),
        ]
    assert parted > 20


def test_pieces_do_not_depend_on_order_and_names() -> None:
    rng = derive(0, "orders")
    for _ in range(200):
        layer = random_layer(rng, 32)
        other = rewritten_layer(layer, rng)
        assert pieces(other) == pieces(layer)
        assert certificate(segment(other).labels, segment(other).edges) == certificate(
            segment(layer).labels, segment(layer).edges
        )


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
    assert min(compare(derive(0, "some pairs"), groups=150, most_layers=2).values()) > 30


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
    assert min(compare(derive(0, "deep pairs"), groups=125, most_layers=8).values()) > 20


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


def card(*mixers: Mixer) -> Card:
    return Card(encoder=Stack(TokenEmbedding(50, 16), tuple(Block(16, mixer, (32,)) for mixer in mixers)))


def graph(term: Term) -> OpGraph:
    return OpGraph(2, 8, term)


def test_other_operations_sizes_and_neighbours_are_told_apart() -> None:
    plain = card(graph(("neg", "Q")), LightweightConvolution(3, 2))
    others = [
        card(graph(("softsign", "Q")), LightweightConvolution(3, 2)),
        card(OpGraph(4, 4, ("neg", "Q")), LightweightConvolution(3, 2)),
        card(graph(("neg", "Q")), LightweightConvolution(5, 2)),
        card(LightweightConvolution(3, 2), graph(("neg", "Q"))),
    ]
    assert len({plain_digest(one) for one in (plain, *others)}) == 5


def test_equal_formulas_have_one_digest() -> None:
    written = ("neg", ("matmul", ("softmax", ("transpose", ("matmul", "K", ("transpose", "Q")))), ("neg", "V")))
    one, other = card(graph(("matmul", ("softmax", SCORES), "V"))), card(graph(written))
    assert one.digest != other.digest
    assert plain_digest(one) == plain_digest(other)
    one, twin, fewer = (
        card(graph(("matmul", ("softmax", ("matmul", name, ("transpose", "K"))), "V"))) for name in "QPK"
    )
    assert plain_digest(one) == plain_digest(twin)
    assert plain_digest(one) != plain_digest(fewer)  # two inputs instead of three
    assert has_formulas(card(LightweightConvolution(3, 2), graph(("neg", "Q"))))
    assert not has_formulas(card(LightweightConvolution(3, 2), Attention(2, 8)))
    for one in (load_card("bert-tiny"), card(Attention(2, 8), LightweightConvolution(3, 2))):
        assert (plain_digest(one), plain_digest(replace(one, idle=0))) == (one.digest, one.digest)
