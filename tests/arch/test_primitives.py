"""Static shapes agree with what numpy computes, and illegal terms are named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.arch.random_cards import pick, random_term

from formwright.arch.primitives import (
    BINARY,
    COMMUTATIVE,
    INPUTS,
    MEANINGS,
    UNARY,
    Shape,
    Term,
    arity,
    canonical,
    inputs_of,
    shape_of,
    show_shape,
    size,
)
from formwright.core.errors import Fault, IllegalDesign
from formwright.core.rng import derive

Array = NDArray[np.float64]
ATTENTION: Term = ("matmul", ("softmax", ("scale", ("matmul", "Q", ("transpose", "K")))), "V")
SHAPES: list[Shape] = [("n", "d"), ("d", "n"), ("n", "n"), ("d", "d")]
SIZES = {"n": 3, "d": 5}


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def cosine(x: Array, y: Array) -> Array:
    return np.asarray((x @ y.T) / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)))


def euclidean(x: Array, y: Array) -> Array:
    return np.asarray(np.linalg.norm(x[:, None, :] - y[None, :, :], axis=2))


def add(x: Array, y: Array) -> Array:
    if x.shape != y.shape:
        raise ValueError("numpy would broadcast")
    return x + y


COMPUTE: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "transpose": np.transpose,
    "scale": lambda x: x / np.sqrt(x.shape[1]),
    "softmax": softmax,
    "logsigmoid": lambda x: -np.logaddexp(0, -x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "add": add,
    "matmul": np.matmul,
    "cosine": cosine,
    "euclidean": euclidean,
}


def compute(term: Term, inputs: dict[str, Array]) -> Array:
    if isinstance(term, str):
        return inputs[term]
    return np.asarray(COMPUTE[str(term[0])](*(compute(operand, inputs) for operand in term[1:])))


@pytest.fixture(name="inputs")
def random_inputs() -> dict[str, Array]:
    rng = derive(1, "inputs")
    return {letter: rng.normal(size=(SIZES["n"], SIZES["d"])) for letter in INPUTS}


def test_random_terms_have_the_shape_that_numpy_gives_them(inputs: dict[str, Array]) -> None:
    rng = derive(0, "terms")
    for _ in range(300):
        shape = pick(rng, SHAPES)
        term = random_term(rng, shape, 4)
        assert shape_of(term) == shape
        assert compute(term, inputs).shape == tuple(SIZES[axis] for axis in shape)


@pytest.mark.parametrize("operation", [*UNARY, *BINARY])
def test_a_term_is_legal_just_when_numpy_can_compute_it(operation: str, inputs: dict[str, Array]) -> None:
    some: list[Term] = [
        "Q",
        ("transpose", "K"),
        ("matmul", "Q", ("transpose", "K")),
        ("matmul", ("transpose", "K"), "V"),
    ]
    for left in some:
        for right in some if arity(operation) == 2 else [None]:
            term: Term = (operation, left) if right is None else (operation, left, right)
            try:
                expected = compute(term, inputs).shape
            except ValueError:
                with pytest.raises(IllegalDesign, match=f"applies {operation} to shapes"):
                    shape_of(term)
            else:
                assert tuple(SIZES[axis] for axis in shape_of(term)) == expected


def test_the_canonical_term_computes_the_same(inputs: dict[str, Array]) -> None:
    rng = derive(2, "terms")
    for _ in range(100):
        term = random_term(rng, ("n", "d"), 4)
        ordered = canonical(term)
        assert canonical(ordered) == ordered
        assert size(ordered) == size(term)
        np.testing.assert_allclose(compute(ordered, inputs), compute(term, inputs))


def test_terms_are_canonical_and_counted() -> None:
    assert frozenset({"add"}) == COMMUTATIVE
    assert canonical(("add", "V", "Q")) == canonical(("add", "Q", "V"))
    assert canonical(("neg", ("add", ("neg", "K"), "Q"))) == canonical(("neg", ("add", "Q", ("neg", "K"))))
    assert canonical(("cosine", "V", "Q")) != canonical(("cosine", "Q", "V"))
    assert (shape_of(ATTENTION), size(ATTENTION)) == (("n", "d"), 5)
    assert inputs_of(ATTENTION) == ("Q", "K", "V")
    assert inputs_of(("add", "P", ("neg", "P"))) == ("P",)
    assert (size(("add", ("neg", "Q"), ("neg", "Q"))), size("Q")) == (3, 0)
    assert set(MEANINGS) == set(UNARY) | set(BINARY) == set(COMPUTE)
    assert not set(UNARY) & set(BINARY)
    assert {arity(operation) for operation in BINARY} == {2}
    assert ({arity(operation) for operation in UNARY}, show_shape(("n", "d"))) == ({1}, "(n, d)")


@pytest.mark.parametrize(
    ("term", "where", "what"),
    [
        ("X", "'X'", "is not an input; inputs are Q, K, V, P"),
        (("soft", "Q"), "('soft', 'Q')", "starts with 'soft'; operations are neg, transpose,"),
        ((("neg", "Q"), "Q"), "(('neg', 'Q'), 'Q')", "starts with ('neg', 'Q'); operations are"),
        (("neg", "Q", "K"), "('neg', 'Q', 'K')", "gives 2 operands to neg, which takes 1"),
        (("add",), "('add',)", "gives 0 operands to add, which takes 2"),
        (("neg", ("matmul", "Q", "K")), "('matmul', 'Q', 'K')", "applies matmul to shapes (n, d) and (n, d)"),
    ],
)
def test_an_illegal_term_is_named(term: Term, where: str, what: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        shape_of(term)
    (fault,) = caught.value.faults
    assert fault.where == where
    assert fault.what.startswith(what)
    assert caught.value.what == "attention"
    assert isinstance(fault, Fault)
