from collections import Counter

import pytest
from numpy.random import default_rng

from formwright.arch.primitives import canonical, inputs_of, shape_of, size
from formwright.space.terms import SHAPES, TermKind, TermTables

TABLES = TermTables(largest=3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("inputs", [0b0001, 0b0110, 0b1111])
def test_listed_terms_are_of_their_kind_and_as_many_as_counted(shape: tuple[str, str], inputs: int) -> None:
    for operations in range(4):
        terms = list(TABLES.enumerate(TermKind(shape, operations, inputs)))
        assert len(set(terms)) == len(terms) == TABLES.count(TermKind(shape, operations, inputs))
        for term in terms:
            assert (shape_of(term), size(term), len(inputs_of(term))) == (shape, operations, inputs.bit_count())
            assert canonical(term) == term


def test_inputs_are_the_only_terms_without_operations() -> None:
    assert list(TABLES.enumerate(TermKind(("n", "d"), 0, 0b0010))) == ["K"]
    assert TABLES.count(TermKind(("n", "n"), 0, 0b0001)) == 0
    assert TABLES.count(TermKind(("n", "d"), 0, 0b0011)) == 0


def test_drawn_terms_are_uniform_also_where_commutative_operands_are_of_one_kind() -> None:
    kind = TermKind(("n", "d"), 3, 0b0001)
    everything = list(TABLES.enumerate(kind))
    doubled = [term for term in everything if term[0] == "add" and term[1] == term[2]]
    assert doubled  # such as add(neg(Q), neg(Q))
    rng = default_rng(5)
    draws = 20 * len(everything)
    seen = Counter(TABLES.sample(kind, rng) for _ in range(draws))
    assert set(seen) <= set(everything)
    freedom = len(everything) - 1
    assert abs(sum((seen[term] - 20) ** 2 / 20 for term in everything) - freedom) < 4 * (2 * freedom) ** 0.5
    assert sum(seen[term] for term in doubled) / len(doubled) == pytest.approx(20, abs=6)
