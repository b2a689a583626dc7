from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.arch.primitives import Term, shape_of
from formwright.space import Expressions
from formwright.space.edits import graft, one_node_edits, positions, replaced

PART = Expressions(largest=5)
SEEDS = st.integers(0, 2**32 - 1)
ATTENTION = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V")


def test_positions_lead_to_their_subterms() -> None:
    found = dict(positions(ATTENTION))
    assert found[()] == ATTENTION
    assert found[1, 1, 2, 1] == "K"
    assert list(found.values())[-1] == "V"
    assert all(replaced(ATTENTION, position, subterm) == ATTENTION for position, subterm in found.items())
    assert replaced(ATTENTION, (2,), "P") == ("matmul", ATTENTION[1], "P")


def test_edits_of_a_small_term_are_all_there() -> None:
    unary = ("neg", "scale", "softmax", "logsigmoid", "softsign")
    inserted = {(name, "Q") for name in unary}
    assert set(one_node_edits("Q")) == inserted | {"K", "V", "P"}
    swapped = {(name, "Q") for name in (*unary, "transpose")} - {("neg", "Q")}
    around = {(name, ("neg", "Q")) for name in unary} | {("neg", (name, "Q")) for name in unary}
    assert set(one_node_edits(("neg", "Q"))) == swapped | around | {("neg", letter) for letter in "KVP"} | {"Q"}


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


def test_a_graft_keeps_the_shapes_whatever_is_allowed() -> None:
    rng = default_rng(0)
    second = ("matmul", "P", ("matmul", ("transpose", "Q"), "K"))
    children = {graft(ATTENTION, second, rng, lambda child: True) for _ in range(200)}
    assert {shape_of(child) for child in children} == {("n", "d")}


def test_grafts_reach_real_mixtures() -> None:
    rng = default_rng(0)
    second = ("add", ("neg", "K"), "P")
    children = {graft(ATTENTION, second, rng, PART.contains) for _ in range(300)}
    assert ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), ("neg", "K")) in children
    assert len(children) > 5


def _symbols(term: Term) -> Counter[str]:
    return Counter(node if isinstance(node, str) else str(node[0]) for _, node in positions(term))
