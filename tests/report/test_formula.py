import ast
import math
import operator
from itertools import islice
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.arch.formula import formula
from formwright.arch.ops import OpGraph
from formwright.arch.primitives import BINARY, INPUTS, UNARY, Term, shape_of
from formwright.arch.simplify import simplified
from formwright.core.errors import IllegalDesign
from formwright.report.formula import _Plan, draw_formula, draw_kernel
from formwright.space import Expressions
from formwright.space.zoo import load_card
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

TOKENS, WIDTH = 3, 5  # unequal, so that a wrong transpose cannot pass


def _plan(term: Term) -> list[Any]:
    plan = _Plan()
    plan.place(simplified(term))
    return plan.nodes


def softplus(term: Term) -> Term:
    return ("neg", ("logsigmoid", ("neg", term)))


@pytest.mark.parametrize(
    ("term", "shown"),
    [
        (("matmul", ("softmax", ("matmul", ("scale", "Q"), ("transpose", "K"))), "V"), "softmax(Q·Kᵀ / √d)·V"),
        (SECOND_LAYER, "softmax(Q·softplus(Kᵀ) / √d)·(K + Q)"),
        (TWELFTH_LAYER, "softmax(Q·(K / √d + V)ᵀ / √d)·V"),
        (("scale", ("matmul", "Q", ("transpose", "K"))), "Q·Kᵀ / √d"),
        (("neg", ("neg", "Q")), "Q"),
        (("neg", ("scale", ("neg", "Q"))), "Q / √d"),
        (("transpose", ("transpose", ("add", "K", "Q"))), "K + Q"),
        (("neg", softplus("K")), "logsigmoid(-K)"),
        (("neg", ("matmul", "Q", ("transpose", softplus("K")))), "Q·logsigmoid(-Kᵀ)"),
        (("add", softplus("Q"), "K"), "K + softplus(Q)"),
        (softplus(("scale", "K")), "softplus(K / √d)"),
        (("add", ("neg", "K"), "Q"), "Q - K"),
        (("add", "V", ("neg", ("add", "K", "Q"))), "V - (K + Q)"),
        (("add", ("scale", ("neg", "K")), ("add", "V", "Q")), "Q + V - K / √d"),
        (("add", ("neg", "Q"), ("scale", ("neg", "K"))), "-(K / √d + Q)"),
        (("add", "V", ("scale", ("add", ("scale", "P"), "K"))), "(K + P / √d) / √d + V"),
        (("matmul", "Q", ("matmul", ("transpose", "K"), "V")), "Q·(Kᵀ·V)"),
        (("matmul", ("cosine", "Q", "K"), ("softsign", "V")), "cosine(Q, K)·softsign(V)"),
        ("P", "P"),
    ],
)
def test_formula_reads_like_a_paper(term: Term, shown: str) -> None:
    assert formula(term) == shown


@pytest.mark.parametrize(("number", "term"), [(2, SECOND_LAYER), (12, TWELFTH_LAYER)])
def test_published_layers_have_the_formulas_of_the_paper(number: int, term: Term) -> None:
    mixer = load_card(f"autobert-zero-layer-{number}").stacks[0].layers[0].mixer  # type: ignore[union-attr]
    assert isinstance(mixer, OpGraph)
    assert formula(mixer.term) == formula(term)


def test_a_formula_stands_for_one_simplified_term() -> None:
    every = [term for part in (Expressions(3), Expressions(4)) for term in islice(part.enumerate(), 1_500)]
    shown = {simplified(term): formula(term) for term in every}
    assert len(set(shown.values())) == len(shown) < len(set(every))


def terms() -> st.SearchStrategy[Term]:
    def grow(children: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        unary = st.tuples(st.sampled_from(sorted(UNARY)), children)
        binary = st.tuples(st.sampled_from(sorted(BINARY)), children, children)
        return (unary | binary).filter(is_legal)

    return st.recursive(st.sampled_from(INPUTS), grow, max_leaves=5)


def is_legal(term: Term) -> bool:
    try:
        shape_of(term)
    except IllegalDesign:
        return False
    return True


def logsigmoid(x: Any) -> Any:
    return -np.log1p(np.exp(-x))


FUNCTIONS: dict[str, Any] = {
    "neg": lambda x: -x,
    "transpose": lambda x: x.T,
    "scale": lambda x: x / math.sqrt(WIDTH),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    "logsigmoid": logsigmoid,
    "softplus": lambda x: -logsigmoid(-x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "add": lambda x, y: x + y,
    "matmul": lambda x, y: x @ y,
    "cosine": lambda x, y: x @ y.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)),
    "euclidean": lambda x, y: np.linalg.norm(x[:, None] - y[None], axis=2),
}


OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.MatMult: operator.matmul,
    ast.Div: operator.truediv,
}


def value_of_term(term: Term, inputs: dict[str, Any]) -> Any:
    if isinstance(term, str):
        return inputs[term]
    return FUNCTIONS[str(term[0])](*(value_of_term(operand, inputs) for operand in term[1:]))


def value_of_formula(shown: str, inputs: dict[str, Any]) -> Any:
    code = shown.replace("·", " @ ").replace("ᵀ", ".T").replace("√d", "root_d")
    return value_of_syntax(ast.parse(code, mode="eval").body, inputs | {"root_d": WIDTH**0.5})


def value_of_syntax(node: ast.expr, names: dict[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            return names[name]
        case ast.Attribute(value, "T"):
            return value_of_syntax(value, names).T
        case ast.UnaryOp(ast.USub(), operand):
            return -value_of_syntax(operand, names)
        case ast.BinOp(left, sign, right):
            return OPERATORS[type(sign)](value_of_syntax(left, names), value_of_syntax(right, names))
        case ast.Call(ast.Name(name), arguments):
            return FUNCTIONS[name](*(value_of_syntax(argument, names) for argument in arguments))
    raise AssertionError(f"no notation of a formula: {ast.dump(node)}")


@given(terms())
def test_formula_has_the_value_of_its_term(term: Term) -> None:
    rng = np.random.default_rng(0)
    inputs = {letter: rng.normal(size=(TOKENS, WIDTH)) * 0.3 for letter in INPUTS}
    with np.errstate(all="ignore"):
        expected = value_of_term(term, inputs)
        found = value_of_formula(formula(term), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def words(term: Term) -> list[str]:
    return [node.words for node in _plan(term)]


def test_operations_are_shared_simplified_and_read_from_left_to_right() -> None:
    nodes = _plan(STANDARD_ATTENTION)
    assert words(STANDARD_ATTENTION) == ["Q", "K", "xᵀ", "x·y", "x / √d", "softmax", "V", "x·y"]
    assert [node.column for node in nodes] == [1, 0, 1, 2, 3, 4, 4, 5]
    assert nodes[3].operands == (0, 2)
    assert words(SECOND_LAYER).count("softplus") == 1
    assert "logsigmoid" not in words(SECOND_LAYER)
    assert words(("neg", ("neg", "Q"))) == ["Q"]
    part = ("softsign", "Q")
    found = words(("add", part, ("softmax", part)))
    assert (found.count("softsign"), found.count("Q")) == (1, 1)
    assert words(("matmul", "Q", ("matmul", ("transpose", "Q"), "Q"))).count("Q") == 3


def test_nothing_stands_on_anything_else_and_all_lines_run_to_the_right() -> None:
    part, rng = Expressions(7), default_rng(0)
    for _ in range(100):
        nodes = _plan(part.sample(rng, "gene"))
        for place, node in enumerate(nodes):
            assert all(operand < place and nodes[operand].column < node.column for operand in node.operands)
            beside = [other.row for other in nodes[:place] if other.column == node.column]
            assert all(abs(node.row - row) >= 1 for row in beside)
        read = {operand for node in nodes for operand in node.operands}
        assert read == set(range(len(nodes) - 1)), "everything but the result is used"


@pytest.mark.parametrize("term", [STANDARD_ATTENTION, SECOND_LAYER, TWELFTH_LAYER, "P"], ids=str)
def test_every_operation_and_every_line_is_drawn_inside(term: Term) -> None:
    drawing, nodes = ElementTree.fromstring(draw_formula(term)), _plan(term)
    assert [one.text for one in drawing.iter("text")] == [node.words for node in nodes]
    assert len(list(drawing.iter("path"))) == 1 + sum(len(node.operands) for node in nodes), "and one out"
    width, height = map(float, drawing.attrib["viewBox"].split()[2:])
    for box in drawing.iter("rect"):
        x, y, wide, high = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x < x + wide <= width
        assert 0 <= y < y + high <= height


def test_the_formula_is_told_to_those_who_cannot_see_it() -> None:
    assert 'aria-label="The graph of softmax(Q·Kᵀ / √d)·V"' in draw_formula(STANDARD_ATTENTION)


@pytest.mark.parametrize("kernel", [1, 3, 9])
def test_a_kernel_has_a_tap_for_each_token_around_the_middle(kernel: int) -> None:
    drawing = ElementTree.fromstring(draw_kernel(kernel, 9))
    track, *taps = drawing.iter("rect")
    assert len(taps) == kernel
    assert [tap.get("class") for tap in taps].index("tap middle") == kernel // 2
    middle = float(taps[kernel // 2].attrib["x"]) + float(taps[kernel // 2].attrib["width"]) / 2
    assert middle == float(track.attrib["x"]) + float(track.attrib["width"]) / 2
