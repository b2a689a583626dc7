import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.arch.primitives import BINARY, COMMUTATIVE, INPUT_SHAPE, INPUTS, UNARY, inputs_of, size
from formwright.core.errors import Fault, IllegalDesign, IllegalInput
from formwright.space import Expressions

EIGHT = Expressions(largest=8)
ATTENTION = ("matmul", ("softmax", ("scale", ("matmul", "Q", ("transpose", "K")))), "V")


def brute_force(largest: int) -> dict[Any, Any]:
    """List every legal term with its shape by trying every operation on everything smaller."""
    by_size: list[dict[Any, Any]] = [dict.fromkeys(INPUTS, INPUT_SHAPE)]
    for operations in range(1, largest + 1):
        made: dict[Any, Any] = {
            (name, term): rule(shape) for term, shape in by_size[-1].items() for name, rule in UNARY.items()
        }
        for left in range(operations):
            for first, one in by_size[left].items():
                for second, other in by_size[operations - 1 - left].items():
                    for name, rule in BINARY.items():
                        result = rule(one, other)
                        if result is not None and not (name in COMMUTATIVE and repr(second) < repr(first)):
                            made[name, first, second] = result
        by_size.append(made)
    return {term: shape for made in by_size[1:] for term, shape in made.items()}


@pytest.mark.parametrize("largest", [1, 2, 3])
def test_counts_agree_with_brute_force(largest: int) -> None:
    legal = [term for term, shape in brute_force(largest).items() if shape == INPUT_SHAPE]
    for least, most in [(1, 4), (2, 4), (2, 2), (3, 3)]:
        if largest >= least - 1:
            expected = {term for term in legal if least <= len(inputs_of(term)) <= most}
            part = Expressions(largest, least, most)
            assert part.count() == len(expected)
            assert set(part.enumerate()) == expected


@pytest.mark.slow
@pytest.mark.long
def test_the_count_of_four_operations_agrees_with_brute_force() -> None:
    legal = [repr(term) for term, shape in brute_force(4).items() if shape == INPUT_SHAPE]
    assert Expressions(4).count() == sum(sum(f"'{letter}'" in term for letter in INPUTS) >= 2 for term in legal)


def test_terms_are_listed_by_size_and_counted() -> None:
    sizes = [size(term) for term in Expressions(3).enumerate()]
    assert sizes == sorted(sizes)
    assert next(Expressions(3).enumerate()) == ("add", "K", "Q")
    part = Expressions(largest=10)
    assert part.count() > 10**12
    rng = default_rng(0)
    assert all(map(part.contains, [part.sample(rng) for _ in range(100)]))
    assert {size(part.sample(rng, "gene")) for _ in range(200)} == set(range(1, 11))
    assert Expressions(largest=5).contains(ATTENTION)
    assert not Expressions(largest=4).contains(ATTENTION)
    assert not Expressions(largest=5, most_inputs=2).contains(ATTENTION)


@pytest.mark.parametrize(
    "value",
    [
        "Q",
        ("neg", "Q"),
        ("matmul", "Q", "K"),
        ("cosine", "Q", "K"),
        ("add", "Q", "K"),
        ("add", "Q"),
        ("add", "Q", "X"),
        ("plus", "Q", "K"),
        ["add", "K", "Q"],
        (),
        7,
        (("add",), "Q", "K"),
    ],
)
def test_illegal_incomplete_and_unordered_terms_are_not_contained(value: object) -> None:
    assert not Expressions(largest=3).contains(value)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_options_are_the_term_and_distinct_legal_terms(seed: int) -> None:
    options = EIGHT.choices(term := EIGHT.sample(default_rng(seed), "gene"))
    assert options[0] == term
    assert len(options) == len(set(options)) > 1
    assert all(map(EIGHT.contains, options))


def test_one_node_away_in_every_way() -> None:
    options = Expressions(largest=6).choices(ATTENTION)
    for edited in [
        ("matmul", ("softsign", ATTENTION[1][1]), "V"),
        ("matmul", ATTENTION[1], "P"),
        ("matmul", ATTENTION[1], ("neg", "V")),
        ("matmul", ("softmax", ATTENTION[1][1][1]), "V"),
    ]:
        assert edited in options
    # no room to insert
    assert all(size(term) <= 5 for term in Expressions(largest=5).choices(ATTENTION))


def test_vectors_that_encode_no_term_are_refused() -> None:
    part = Expressions(largest=2)
    with pytest.raises(IllegalDesign, match="has 0 operations"):
        part.decode(np.zeros(part.width))
    endless = np.zeros((5, 14))
    endless[:, len(INPUTS)] = 1.0
    with pytest.raises(IllegalDesign, match="tokens end before the term does"):
        part.decode(endless.ravel())


def test_all_faults_of_json_are_listed() -> None:
    part, faults = Expressions(largest=2), list[Fault]()
    part.from_json(["add", ["neg", "X"], ["plus", "Q", "K"]], ("mixer",), faults)
    part.from_json(["matmul", "Q", "K"], ("wrong_shape",), faults)
    part.from_json(["cosine", "Q", "K"], ("wrong_result",), faults)
    part.from_json(["neg", "Q"], ("few",), faults)
    part.from_json(["neg", "Q", "K"], ("arity",), faults)
    part.from_json(["neg", ["neg", ["add", "Q", "K"]]], ("large",), faults)
    assert [(fault.where, fault.what[:40]) for fault in faults] == [
        ("mixer[1][1]", "is 'X'; expected an input (Q, K, V, P) o"),
        ("mixer[2][0]", "is 'plus'; operations are neg, transpose"),
        ("wrong_shape", "('matmul', 'Q', 'K') applies matmul to s"),
        ("wrong_result", "has shape (n, n); expected (n, d)"),
        ("few", "uses 1 inputs; allowed: 2 to 4"),
        ("arity", "gives 2 operands to neg, which takes 1"),
        ("large", "has 3 operations; allowed: 1 to 2"),
    ]


@pytest.mark.parametrize("bounds", [(0,), (2, 4, 4), (3, 3, 2), (3, 0, 2), (3, 2, 5)])
def test_bounds_that_no_term_meets_are_refused(bounds: tuple[int, ...]) -> None:
    with pytest.raises(IllegalInput):
        Expressions(*bounds)


def test_terms_are_encoded_in_preorder_and_nested_json() -> None:
    part = Expressions(largest=1)
    assert part.encode(next(part.enumerate())).reshape(3, -1).sum(axis=1).tolist() == [1, 1, 1]
    assert Expressions(largest=8).encode(ATTENTION).sum() == 8
    assert Expressions(largest=8).decode(Expressions(largest=8).encode(ATTENTION)) == ATTENTION
    part, faults = Expressions(largest=5), list[Fault]()
    assert part.to_json(("add", ("neg", "K"), "Q")) == ["add", ["neg", "K"], "Q"]
    assert part.from_json(["add", "Q", "K"], (), faults) == part.from_json(["add", "K", "Q"], (), faults)
    assert faults == []
    part = Expressions(largest=3)
    part.count()
    assert len(pickle.dumps(part)) < 200
    assert pickle.loads(pickle.dumps(part)) == part
