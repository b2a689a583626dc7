from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.arch.primitives import BINARY, UNARY, Term, inputs_of, size
from formwright.space import Expressions
from formwright.space.rewrite import operation_names, operations_of, with_insertion, with_operation, without_operation

PART = Expressions(largest=8)
SEEDS = st.integers(0, 2**32 - 1)
OPERATIONS = (*UNARY, *BINARY)
ATTENTION: Term = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V")


def test_operations_come_in_the_order_in_which_they_are_computed() -> None:
    assert operation_names(ATTENTION) == ("transpose", "matmul", "softmax", "matmul")
    assert operations_of(ATTENTION) == [(1, 1, 2), (1, 1), (1,), ()]
    assert operations_of("Q") == []


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
    found = {with_operation(ATTENTION, place, operation, default_rng(seed), PART.contains) for seed in range(20)}
    assert found == expected


def test_a_second_operand_is_drawn_where_one_is_needed() -> None:
    found = {with_operation(ATTENTION, 2, "add", default_rng(seed), PART.contains) for seed in range(200)}
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
    term = PART.sample(rng, "gene")
    for place, present in enumerate(operation_names(term)):
        found = with_operation(term, place, operation, rng, PART.contains)
        # a term that is full has no room for a second operand, and one that has few inputs cannot lose one
        if found is not None:
            assert PART.contains(found)
            assert operation in operation_names(found)
            assert present != operation or found == term


def test_a_move_is_refused_only_where_room_or_inputs_run_out() -> None:
    rng, refused, tried = default_rng(0), 0, 0
    while tried < 300:
        term = PART.sample(rng, "gene")
        if size(term) <= PART.largest - 3 and len(inputs_of(term)) > 2:
            for place in range(size(term)):
                found = [with_operation(term, place, operation, rng, PART.contains) for operation in OPERATIONS]
                refused, tried = refused + found.count(None), tried + len(found)
    assert refused < 0.2 * tried


def test_an_insertion_is_computed_just_before_its_place() -> None:
    rng = default_rng(0)
    assert with_insertion(ATTENTION, 2, "scale", rng, PART.contains) == (
        "matmul",
        ("softmax", ("scale", ATTENTION[1][1])),
        "V",
    )
    longer = with_insertion(ATTENTION, 3, "neg", rng, PART.contains)
    assert longer == ("matmul", ATTENTION[1], ("neg", "V"))
    assert operation_names(longer) == ("transpose", "matmul", "softmax", "neg", "matmul")
    assert with_insertion(ATTENTION, 2, "scale", rng, Expressions(4).contains) is None


def test_an_operation_is_left_out_where_an_operand_can_take_its_place() -> None:
    rng = default_rng(0)
    assert without_operation(ATTENTION, 2, rng, PART.contains) == ("matmul", ATTENTION[1][1], "V")
    summed: Term = ("add", ("neg", "Q"), ("matmul", "K", ("matmul", ("transpose", "Q"), "V")))
    # the larger operand stays
    assert without_operation(summed, len(operation_names(summed)) - 1, rng, PART.contains) == summed[2]
    # of the whole attention only V would be left, which is none
    assert without_operation(ATTENTION, 3, rng, PART.contains) is None


def test_insertions_make_terms_longer_and_omissions_shorter_but_for_what_is_mended() -> None:
    rng, grown, shrunk = default_rng(0), list[int](), list[int]()
    for _ in range(100):
        term = PART.sample(rng, "gene")
        place, operation = int(rng.integers(size(term))), OPERATIONS[int(rng.integers(len(OPERATIONS)))]
        longer = with_insertion(term, place, operation, rng, PART.contains)
        shorter = without_operation(term, place, rng, PART.contains)
        assert all(found is None or PART.contains(found) for found in (longer, shorter))
        grown += [size(longer) - size(term)] if longer else []
        shrunk += [size(shorter) - size(term)] if shorter else []
    assert min(len(grown), len(shrunk)) > 30
    # where a term is full, something else has to go
    assert np.mean(np.array(grown) > 0) > 0.7
    assert np.mean(np.array(shrunk) < 0) > 0.7
