from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.arch.primitives import BINARY, UNARY, Term, inputs_of, shape_of, size
from formwright.space import Choice, Expressions, Record, Repeat, Switch
from formwright.space.design import Case, Fields
from formwright.space.term_edits import (
    TermGene,
    graft,
    one_node_edits,
    operation_names,
    operations_of,
    positions,
    replaced,
)

PART = Expressions(largest=5)
SEEDS = st.integers(0, 2**32 - 1)
ATTENTION: Term = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V")
LARGE_PART = Expressions(largest=8)
OPERATIONS = (*UNARY, *BINARY)


def gene_of(term: Term, part: Expressions = LARGE_PART) -> TermGene:
    (gene,) = part.genes(term, ("mixer",))
    assert isinstance(gene, TermGene)
    return gene


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_an_edit_swaps_one_symbol_or_inserts_or_deletes_one_unary(seed: int) -> None:
    term = PART.sample(default_rng(seed), "gene")
    for edited in one_node_edits(term):
        gone, come = _symbols(term) - _symbols(edited), _symbols(edited) - _symbols(term)
        assert (gone.total(), come.total()) in {(1, 1), (0, 1), (1, 0)}
        if gone.total() != come.total():
            assert set(gone | come) <= {"neg", "scale", "softmax", "logsigmoid", "softsign", "transpose"}


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_graft_is_one_parent_with_a_subterm_of_the_other(seed: int) -> None:
    rng = default_rng(seed)
    first, second = PART.sample(rng, "gene"), PART.sample(rng, "gene")
    child = graft(first, second, rng, PART.contains)
    assert PART.contains(child)
    # operands may have been put in canonical order, so the parts are compared as symbols
    made_of = [
        _symbols(first) - _symbols(old) + _symbols(new)
        for _, old in positions(first)
        for _, new in positions(second)
        if shape_of(old) == shape_of(new)
    ]
    assert _symbols(child) in made_of


def test_grafts_keep_the_shapes_and_mix() -> None:
    rng = default_rng(0)
    second = ("matmul", "P", ("matmul", ("transpose", "Q"), "K"))
    children = {graft(ATTENTION, second, rng, lambda child: True) for _ in range(200)}
    assert {shape_of(child) for child in children} == {("n", "d")}
    rng = default_rng(0)
    second = ("add", ("neg", "K"), "P")
    children = {graft(ATTENTION, second, rng, PART.contains) for _ in range(300)}
    assert ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), ("neg", "K")) in children
    assert len(children) > 5


def _symbols(term: Term) -> Counter[str]:
    return Counter(node if isinstance(node, str) else str(node[0]) for _, node in positions(term))


def test_positions_edits_and_the_order_of_operations() -> None:
    found = dict(positions(ATTENTION))
    assert (found[()], found[1, 1, 2, 1], list(found.values())[-1]) == (ATTENTION, "K", "V")
    assert all(replaced(ATTENTION, position, subterm) == ATTENTION for position, subterm in found.items())
    assert replaced(ATTENTION, (2,), "P") == ("matmul", ATTENTION[1], "P")
    unary = ("neg", "scale", "softmax", "logsigmoid", "softsign")
    assert set(one_node_edits("Q")) == {(name, "Q") for name in unary} | {"K", "V", "P"}
    swapped = {(name, "Q") for name in (*unary, "transpose")} - {("neg", "Q")}
    around = {(name, ("neg", "Q")) for name in unary} | {("neg", (name, "Q")) for name in unary}
    assert set(one_node_edits(("neg", "Q"))) == swapped | around | {("neg", letter) for letter in "KVP"} | {"Q"}
    assert operation_names(ATTENTION) == ("transpose", "matmul", "softmax", "matmul")
    assert (operations_of(ATTENTION), operations_of("Q")) == ([(1, 1, 2), (1, 1), (1,), ()], [])


@pytest.mark.parametrize(
    ("place", "operation", "expected"),
    [
        (2, "softsign", {("matmul", ("softsign", ATTENTION[1][1]), "V")}),
        (2, "softmax", {ATTENTION}),
        # the rows of a similarity are those of its operands, so the transpose before it has to go
        (1, "cosine", {("matmul", ("softmax", ("cosine", "Q", "K")), "V")}),
        # the product that follows needs a transpose, wherever it stands
        (
            0,
            "neg",
            {
                ("matmul", ("softmax", ("matmul", "Q", turned)), "V")
                for turned in (("neg", ("transpose", "K")), ("transpose", ("neg", "K")))
            },
        ),
        # one operand of the last product would have to go, and V alone is no attention
        (3, "neg", {None}),
    ],
)
def test_what_no_longer_fits_is_mended_with_few_changes(place: int, operation: str, expected: set[Term | None]) -> None:
    found = {gene_of(ATTENTION).with_operation(place, operation, default_rng(seed)) for seed in range(20)}
    assert found == expected


def test_a_second_operand_is_drawn_where_one_is_needed() -> None:
    found = {gene_of(ATTENTION).with_operation(2, "add", default_rng(seed)) for seed in range(200)}
    added = {term[1] for term in found if term}
    # a product of two inputs is the least that can be added to scores
    assert added <= {("add", ATTENTION[1][1], other) for other in _products()} | {
        ("add", other, ATTENTION[1][1]) for other in _products()
    }
    assert len(added) > 5


def _products() -> set[Term]:
    return {("matmul", left, ("transpose", right)) for left in "QKVP" for right in "QKVP"}


@settings(max_examples=25)
@given(seed=SEEDS, operation=st.sampled_from(OPERATIONS))
def test_a_changed_term_is_legal_and_has_the_operation(seed: int, operation: str) -> None:
    rng = default_rng(seed)
    term = LARGE_PART.sample(rng, "gene")
    for place, present in enumerate(operation_names(term)):
        found = gene_of(term).with_operation(place, operation, rng)
        # a term that is full has no room for a second operand, and one that has few inputs cannot lose one
        if found is not None:
            assert LARGE_PART.contains(found)
            assert operation in operation_names(found)
            assert present != operation or found == term


def test_a_move_is_refused_only_where_room_or_inputs_run_out() -> None:
    rng, refused, tried = default_rng(0), 0, 0
    while tried < 300:
        term = LARGE_PART.sample(rng, "gene")
        if size(term) <= LARGE_PART.largest - 3 and len(inputs_of(term)) > 2:
            for place in range(size(term)):
                found = [gene_of(term).with_operation(place, operation, rng) for operation in OPERATIONS]
                refused, tried = refused + found.count(None), tried + len(found)
    assert refused < 0.2 * tried


def test_an_insertion_is_computed_just_before_its_place() -> None:
    rng = default_rng(0)
    assert gene_of(ATTENTION).with_insertion(2, "scale", rng) == (
        "matmul",
        ("softmax", ("scale", ATTENTION[1][1])),
        "V",
    )
    longer = gene_of(ATTENTION).with_insertion(3, "neg", rng)
    assert longer == ("matmul", ATTENTION[1], ("neg", "V"))
    assert operation_names(longer) == ("transpose", "matmul", "softmax", "neg", "matmul")
    assert gene_of(ATTENTION, Expressions(4)).with_insertion(2, "scale", rng) is None


def test_an_operation_is_left_out_where_an_operand_can_take_its_place() -> None:
    rng = default_rng(0)
    assert gene_of(ATTENTION).without_operation(2, rng) == ("matmul", ATTENTION[1][1], "V")
    summed: Term = ("add", ("neg", "Q"), ("matmul", "K", ("matmul", ("transpose", "Q"), "V")))
    # the larger operand stays
    assert gene_of(summed).without_operation(len(operation_names(summed)) - 1, rng) == summed[2]
    # of the whole attention only V would be left, which is none
    assert gene_of(ATTENTION).without_operation(3, rng) is None


def test_insertions_make_terms_longer_and_omissions_shorter_but_for_what_is_mended() -> None:
    rng, grown, shrunk = default_rng(0), list[int](), list[int]()
    for _ in range(100):
        term = LARGE_PART.sample(rng, "gene")
        place, operation = int(rng.integers(size(term))), OPERATIONS[int(rng.integers(len(OPERATIONS)))]
        longer = gene_of(term).with_insertion(place, operation, rng)
        shorter = gene_of(term).without_operation(place, rng)
        assert all(found is None or LARGE_PART.contains(found) for found in (longer, shorter))
        grown += [size(longer) - size(term)] if longer else []
        shrunk += [size(shorter) - size(term)] if shorter else []
    assert min(len(grown), len(shrunk)) > 30
    # where a term is full, something else has to go
    assert np.mean(np.array(grown) > 0) > 0.7
    assert np.mean(np.array(shrunk) < 0) > 0.7


def test_it_names_operations_and_inputs() -> None:
    gene = gene_of(ATTENTION, PART)
    assert (gene.name, gene.operations) == ("mixer", ("transpose", "matmul", "softmax", "matmul"))
    assert gene.inputs == ("Q", "K", "V")
    assert gene.options == PART.choices(ATTENTION)


def test_moves_keep_the_limits_of_the_part() -> None:
    gene, rng = gene_of(ATTENTION, PART), default_rng(0)
    assert gene.with_operation(2, "neg", rng) == ("matmul", ("neg", ATTENTION[1][1]), "V")
    assert gene.with_insertion(2, "neg", rng) == ("matmul", ("softmax", ("neg", ATTENTION[1][1])), "V")
    assert gene.with_insertion(2, "add", rng) is None  # would need three more operations
    assert gene.without_operation(2, rng) == ("matmul", ATTENTION[1][1], "V")
    assert gene.with_input(2, "P") == ("matmul", ATTENTION[1], "P")
    assert gene_of(ATTENTION, Expressions(5, least_inputs=3)).with_input(2, "K") is None


def test_genes_that_others_depend_on_are_structural() -> None:
    part = Record.of(
        layers=Repeat(Switch.of(attention=Expressions(3), convolution=Choice((3, 5))), (1, 2)), width=Choice((8, 16))
    )
    design = Fields.of(layers=(Case("attention", ("add", "K", "Q")), Case("convolution", 5)), width=8)
    assert part.contains(design)
    assert [(gene.name, gene.structural) for gene in part.genes(design)] == [
        ("layers", True),
        ("layers[0]", True),
        ("layers[0].attention", False),
        ("layers[1]", True),
        ("layers[1].convolution", False),
        ("width", False),
    ]
