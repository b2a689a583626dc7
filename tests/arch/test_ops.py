"""The vocabulary reads and writes itself, and an op graph refuses what is not an attention."""

from dataclasses import replace
from typing import Any

import pytest
from tests.arch.random_cards import NAMED, random_attention_term, random_branch_operation, random_mixer

from formwright.arch.ops import OpGraph, all_operations, operations_at
from formwright.arch.primitives import canonical
from formwright.core import codec
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive


def faults_of(data: Any) -> list[tuple[str, str]]:
    with pytest.raises(IllegalDesign) as caught:
        codec.read(OpGraph, data, "card")
    return [(fault.where, fault.what) for fault in caught.value.faults]


def op_graph(term: Any) -> dict[str, Any]:
    return {"type": "op-graph", "heads": 2, "head_width": 4, "term": term}


def nested(depth: int) -> list[Any]:
    term: Any = "Q"
    for _ in range(depth):
        term = ["neg", term]
    assert isinstance(term, list)
    return term


def test_the_vocabulary_holds_every_operation_once() -> None:
    assert len({kind.SWATCH.glyph for kind in all_operations().values()}) == len(all_operations())
    assert set(all_operations().values()) >= NAMED
    assert {kind.TYPE for kind in NAMED if not kind.CAUSAL} == {"transform", "op-graph"}
    places = {place: {kind.TYPE for kind in NAMED if place in kind.PLACES} for place in ("mixer", "branch", "cross")}
    assert all(set(operations_at(place)) >= types for place, types in places.items())
    assert places["mixer"] - places["branch"] == {"transform", "dynamic-convolution", "op-graph"}
    assert places["branch"] - places["mixer"] == {"cross-attention", "convolution", "gated-linear-unit"}
    assert places["cross"] == {"cross-attention"}
    rng = derive(0, "operations")
    mixers = [random_mixer(rng, 32, causal=False) for _ in range(150)]
    branches = [random_branch_operation(rng, None) for _ in range(100)]
    found = {type(operation) for operation in (*mixers, *branches)}
    assert {kind.__name__ for kind in NAMED - found} == {"CrossAttention"}  # which needs an encoder
    for operation in (*mixers, *branches):
        assert codec.read(type(operation), codec.write(operation), "operation") == operation


def test_an_op_graph_holds_the_canonical_term() -> None:
    rng = derive(0, "graphs")
    for _ in range(50):
        term = random_attention_term(rng)
        graph = OpGraph(1, 8, term)
        assert graph.term == canonical(term)
        assert replace(graph, heads=2).term == graph.term
        assert set(graph.inputs) <= set("QKVP")
        assert all(repr(letter) in repr(term) for letter in graph.inputs)


@pytest.mark.parametrize(
    ("term", "where", "what"),
    [
        ("Q", "term", "is the bare input Q; an attention applies at least one operation"),
        (["transpose", "Q"], "term", "gives shape (d, n); an attention must give (n, d)"),
        (["matmul", "Q", "K"], "term: ('matmul', 'Q', 'K')", "applies matmul to shapes (n, d) and (n, d)"),
        (["neg", "X"], "term: 'X'", "is not an input; inputs are Q, K, V, P"),
        (["neg", 3], "term", "must be an input such as 'Q' or a list such as ['softmax', 'Q']"),
        ([], "term", "must be an input such as 'Q' or a list such as ['softmax', 'Q']"),
        ({}, "term", "must be an input such as 'Q' or a list such as ['softmax', 'Q']"),
        (nested(65), "term", "is nested deeper than 64 operations"),
    ],
)
def test_an_illegal_term_is_refused(term: Any, where: str, what: str) -> None:
    assert faults_of(op_graph(term)) == [(where, what)]


def test_op_graphs_are_values_and_nested_lists() -> None:
    assert OpGraph(2, 4, ("add", "Q", ("neg", "K"))) == OpGraph(2, 4, ("add", ("neg", "K"), "Q"))
    assert OpGraph(2, 4, ("add", "Q", "K")) != OpGraph(2, 4, ("add", "Q", "V"))
    graph = OpGraph(2, 4, ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V"))
    assert codec.write(graph) == op_graph(["matmul", ["softmax", ["matmul", "Q", ["transpose", "K"]]], "V"])
    assert codec.write(codec.read(OpGraph, op_graph(nested(64)), "card"))["term"] == nested(64)
    ((where, _),) = faults_of(op_graph(["__import__('os').getcwd", "Q"]))
    assert where == """term: ("__import__('os').getcwd", 'Q')"""
