from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from numpy.random import Generator
from tests.arch.changed_cards import merged, near_miss, rewritten, rewritten_layer, split
from tests.arch.random_cards import random_card, random_cell, random_layer
from tests.arch.test_graph_certificates import isomorphic

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, TokenEmbedding
from formwright.arch.graph import (
    certificate,
    graph_digest,
    graph_of,
    has_formulas,
    pieces,
    plain_digest,
    segment,
)
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.primitives import Term
from formwright.core.rng import derive
from formwright.space.zoo import load_card

NORMED = Branch(0, ops.Identity(), 32, norm=True)
DENSE = Branch(0, ops.Convolution(), 32)
WIDE = Branch(0, ops.Convolution(3), 64, activation="relu")
PLAIN = Block(32, ops.Attention(1, 8))
IDENTITY = Block(32, ops.Identity())
SCORES: Term = ("matmul", "Q", ("transpose", "K"))


def block(mixer: ops.Mixer, cross: ops.CrossAttention | None = None) -> Block:
    return Block(32, mixer, cross=cross)


def test_a_block_after_the_norm() -> None:
    drawn = segment(Block(32, ops.Attention(2, 16), (64, 48), "relu"))
    head = 'attention 32>32 {"head_width":16}'
    hidden = ("feed-forward 32>64 relu", "feed-forward 64>48 relu")
    assert drawn.labels == ("", head, head, "add norm 32", *hidden, "add norm 32")
    edges = {(0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6), (3, 6)}
    assert set(drawn.edges) == {(*ends, 0) for ends in edges}
    assert drawn.reads == ()


def test_a_block_before_the_norm_and_with_cross_attention() -> None:
    drawn = segment(Block(32, ops.Identity(), (64,), norm="pre"))
    assert drawn.labels == ("", "norm 32", "feed-forward 32>64 gelu", "add 32")
    assert set(drawn.edges) == {(0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 3, 0)}
    drawn = segment(Block(32, ops.Identity(), cross=ops.CrossAttention(2, 16, layers=3)))
    assert drawn.labels[1:3] == ('cross-attention 32>32 {"head_width":16,"layers":3}',) * 2
    assert drawn.reads == ((1, 3), (2, 3))
    cell = Cell(32, (Junction(DENSE, Branch(0, ops.CrossAttention(2, 16, layers=2), 32)),))
    assert segment(cell).reads == ((2, 2),)


@pytest.mark.parametrize("layer", [Block(32, ops.Identity()), Cell(32, (Junction(Branch(0, ops.Identity(), 32)),))])
def test_identity_draws_nothing(layer: Layer) -> None:
    assert (segment(layer).labels, segment(layer).edges, pieces(layer)) == (("",), (), ())


@pytest.mark.parametrize(
    ("mixer", "heads"),
    [
        (ops.Attention(3, 16), 3),
        (ops.DynamicConvolution(3, 4, 8), 4),
        (ops.Transform("dct", ops.RelativeAttention(2, 16, 9)), 2),
        (ops.Transform("dct"), 1),
        (ops.SeparableConvolution(3), 1),
        (ops.LightweightConvolution(3, 4), 1),
    ],
)
def test_parallel_heads_are_parallel_nodes(mixer: ops.Mixer, heads: int) -> None:
    drawn = segment(Block(32, mixer))
    assert (len(drawn.labels), len(set(drawn.labels[1:-1]))) == (heads + 2, 1)


def test_an_op_graph_is_drawn_simplified_with_common_parts_once() -> None:
    twice = ("matmul", ("cosine", ("softsign", "Q"), ("softsign", "Q")), "V")
    drawn = segment(Block(32, ops.OpGraph(2, 8, twice)))
    assert sorted(drawn.labels) == sorted(
        ["", *["project 32>2x8"] * 2, "softsign 2x8", "cosine 2x8", "matmul 2x8", "project 2x8>32", "add norm 32"]
    )
    common, similarity = drawn.labels.index("softsign 2x8"), drawn.labels.index("cosine 2x8")
    assert [edge for edge in drawn.edges if edge[1] == similarity] == [(common, similarity, 0), (common, similarity, 1)]
    plain = segment(block(ops.OpGraph(2, 8, ("matmul", ("cosine", "Q", "K"), "V"))))
    assert segment(block(ops.OpGraph(2, 8, ("neg", ("matmul", ("cosine", ("neg", "Q"), "K"), "V"))))) == plain
    assert segment(block(ops.OpGraph(2, 8, ("neg", ("neg", "Q"))))).labels[1:3] == ("project 32>2x8", "project 2x8>32")


def test_a_cell_draws_its_branches_and_joints() -> None:
    cell = Cell(32, (Junction(DENSE, WIDE, "concatenate"), Junction(NORMED, Branch(1, ops.Identity(), 96), "multiply")))
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
ATTENTION = Block(32, ops.Attention(2, 16), (64,))
FIRST, SECOND = (Branch(state, ops.Identity(), 32) for state in (1, 2))
WIDE_FIRST, WIDE_SECOND = (Branch(state, ops.Identity(), 64) for state in (1, 2))


def formulas(*terms: Term) -> tuple[Layer, ...]:
    return tuple(block(ops.OpGraph(1, 8, term)) for term in terms)


def joints(combine: str) -> tuple[Layer, ...]:
    """Join two branches in both orders."""
    return tuple(Cell(32, (Junction(*sides, combine),)) for sides in ((DENSE, WIDE), (WIDE, DENSE)))  # type: ignore[arg-type]


def attentions(**changes: Any) -> tuple[Layer, ...]:
    return ATTENTION, replace(ATTENTION, **changes)


SAME: dict[str, tuple[Layer, ...]] = {
    "branches of an addition": joints("add"),
    "branches of a product": joints("multiply"),
    "names of inputs": formulas(("matmul", ("cosine", "Q", "K"), "V"), ("matmul", ("cosine", "P", "Q"), "K")),
    "operands of an addition": formulas(("add", "Q", ("neg", "K")), ("add", ("neg", "Q"), "K")),
    "brackets of a sum": formulas(
        ("add", "Q", ("add", "K", ("softmax", "V"))), ("add", ("add", "Q", ("softmax", "V")), "K")
    ),
    "which of two differences is turned round, whatever the names": formulas(
        ("add", "Q", ("matmul", DIFFERENCES, "V")), ("add", "K", ("matmul", DIFFERENCES, "P"))
    ),
    "order of junctions": (
        Cell(32, (Junction(DENSE), Junction(WIDE), Junction(FIRST, WIDE_SECOND))),
        Cell(32, (Junction(WIDE), Junction(DENSE), Junction(SECOND, WIDE_FIRST))),
    ),
}
DIFFERENT: dict[str, tuple[Layer, ...]] = {
    "width": attentions(width=64),
    "feed-forward width": attentions(feed_forward=(65,)),
    "feed-forward order": (replace(ATTENTION, feed_forward=(64, 48)), replace(ATTENTION, feed_forward=(48, 64))),
    "activation": attentions(activation="relu"),
    "norm": attentions(norm="pre"),
    "heads": attentions(mixer=ops.Attention(3, 16)),
    "head width": attentions(mixer=ops.Attention(2, 8)),
    "score": attentions(mixer=ops.Attention(2, 16, "wma")),
    "relative positions": attentions(mixer=ops.Attention(2, 16, relative=ops.Relative(9))),
    "mixer or cross": attentions(mixer=ops.Identity(), cross=ops.CrossAttention(2, 16)),
    "memory depth": tuple(block(ops.Identity(), ops.CrossAttention(1, 8, layers=depth)) for depth in (1, 2)),
    "kernel": (block(ops.SeparableConvolution(3)), block(ops.SeparableConvolution(5))),
    "transform": (block(ops.Transform("dct")), block(ops.Transform("dft"))),
    "lightweight heads": (block(ops.LightweightConvolution(3, 4)), block(ops.LightweightConvolution(3, 8))),
    "order of a product": formulas(
        ("matmul", ("cosine", ("softsign", "Q"), "K"), "V"), ("matmul", ("cosine", "K", ("softsign", "Q")), "V")
    ),
    "one input or two": formulas(("matmul", ("cosine", "Q", "K"), "V"), ("matmul", ("cosine", "Q", "K"), "Q")),
    "order of a concatenation": joints("concatenate"),
    "combination": (joints("add")[0], joints("multiply")[0]),
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
    assert pieces(replace(ATTENTION, mixer=ops.Identity())) == (feed_forward,)


def test_pieces_do_not_depend_on_the_division_into_cells() -> None:
    rng = derive(0, "divisions")
    parted = 0
    for _ in range(200):
        cell, above = random_cell(rng, 32), random_cell(rng, 32)
        divided = split(cell, rng)
        parted += len(divided) > 1
        assert [piece for part in divided for piece in pieces(part)] == list(pieces(cell))
        both = [*pieces(cell), *pieces(above)]
        assert [piece for part in merged([cell, above], rng) for piece in pieces(part)] == both
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
            one, other = graph_of(first), graph_of(second)
            same = Counter(one.labels) == Counter(other.labels) and isomorphic(
                (one.labels, one.edges), (other.labels, other.edges)
            )
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
    block = Block(128, ops.Attention(heads, 128 // heads), (512,) * feed_forward)
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
    above = Block(32, ops.Attention(1, 8), cross=ops.CrossAttention(1, 8, layers=depth))
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


def card(*mixers: ops.Mixer) -> Card:
    return Card(encoder=Stack(TokenEmbedding(50, 16), tuple(Block(16, mixer, (32,)) for mixer in mixers)))


def graph(term: Term) -> ops.OpGraph:
    return ops.OpGraph(2, 8, term)


def test_other_operations_sizes_and_neighbours_are_told_apart() -> None:
    plain = card(graph(("neg", "Q")), ops.LightweightConvolution(3, 2))
    others = [
        card(graph(("softsign", "Q")), ops.LightweightConvolution(3, 2)),
        card(ops.OpGraph(4, 4, ("neg", "Q")), ops.LightweightConvolution(3, 2)),
        card(graph(("neg", "Q")), ops.LightweightConvolution(5, 2)),
        card(ops.LightweightConvolution(3, 2), graph(("neg", "Q"))),
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
    assert has_formulas(card(ops.LightweightConvolution(3, 2), graph(("neg", "Q"))))
    assert not has_formulas(card(ops.LightweightConvolution(3, 2), ops.Attention(2, 8)))
    for one in (load_card("bert-tiny"), card(ops.Attention(2, 8), ops.LightweightConvolution(3, 2))):
        assert (plain_digest(one), plain_digest(replace(one, idle=0))) == (one.digest, one.digest)
