import numpy as np
import pytest
from numpy.random import Generator
from tests.arch.random_cards import pick, random_term
from tests.arch.test_primitives import SHAPES, Array, compute

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.graph import graph_digest
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import OpGraph
from formwright.arch.primitives import INPUTS, Term, canonical, inputs_of, shape_of, size
from formwright.arch.simplify import (
    NEGATED,
    PHASES,
    TURNED,
    Forms,
    TermForm,
    distance,
    log_sigmoid,
    odd,
    representative,
    shifted,
    simplified,
    total,
    wrapped,
)
from formwright.core.rng import derive
from formwright.space.zoo import load_card
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

PRODUCT: Term = ("matmul", "Q", ("transpose", "K"))
EQUAL: dict[str, tuple[Term, Term]] = {
    "two minuses": (("neg", ("neg", "Q")), "Q"),
    "two minuses with a scale between": (("neg", ("scale", ("neg", "Q"))), ("scale", "Q")),
    "two transposes": (("transpose", ("transpose", "Q")), "Q"),
    "two transposes with functions between": (("transpose", ("softsign", ("transpose", "Q"))), ("softsign", "Q")),
    "a transposed product": (("transpose", PRODUCT), ("matmul", "K", ("transpose", "Q"))),
    "a transposed similarity": (("transpose", ("cosine", "Q", "K")), ("cosine", "K", "Q")),
    "a transposed distance": (("transpose", ("euclidean", "Q", "K")), ("euclidean", "K", "Q")),
    "scales in a product": (("matmul", ("scale", "Q"), ("transpose", "K")), ("scale", PRODUCT)),
    "minuses in a product": (("matmul", ("neg", "Q"), ("transpose", ("neg", "K"))), PRODUCT),
    "a minus in a product": (("matmul", "Q", ("neg", ("transpose", "K"))), ("neg", PRODUCT)),
    "a minus in a similarity": (("cosine", "Q", ("neg", "K")), ("neg", ("cosine", "Q", "K"))),
    "minuses in a distance": (("euclidean", ("neg", "Q"), ("neg", "K")), ("euclidean", "Q", "K")),
    "an odd function": (("softsign", ("neg", "Q")), ("neg", ("softsign", "Q"))),
    "a sum of minuses": (("add", ("neg", "K"), ("neg", "Q")), ("neg", ("add", "K", "Q"))),
    "a difference turned round": (("neg", ("add", "K", ("neg", "Q"))), ("add", "Q", ("neg", "K"))),
    "brackets of a sum": (("add", ("add", "V", "K"), "Q"), ("add", "K", ("add", "Q", "V"))),
    "a transposed sum": (("add", ("transpose", "K"), ("transpose", "Q")), ("transpose", ("add", "K", "Q"))),
    "a scaled sum": (("add", ("scale", "K"), ("scale", "Q")), ("scale", ("add", "K", "Q"))),
    "half of a sum scaled": (
        ("add", ("add", "Q", ("scale", "K")), ("scale", "V")),
        ("add", "Q", ("scale", ("add", "K", "V"))),
    ),
    "softplus in a product": (
        ("neg", ("matmul", "Q", ("logsigmoid", ("neg", ("transpose", "K"))))),
        ("matmul", "Q", ("neg", ("logsigmoid", ("neg", ("transpose", "K"))))),
    ),
}
DIFFERENT: dict[str, tuple[Term, Term]] = {
    "order of multiplication": (("matmul", PRODUCT, "V"), ("matmul", "Q", ("matmul", ("transpose", "K"), "V"))),
    "softmax over rows or columns": (("transpose", ("softmax", ("transpose", "Q"))), ("softmax", "Q")),
    "one minus in a distance": (("euclidean", ("neg", "Q"), "K"), ("euclidean", "Q", "K")),
    "a scaled similarity": (("cosine", ("scale", "Q"), "K"), ("cosine", "Q", "K")),
    "no odd function": (("logsigmoid", ("neg", "Q")), ("neg", ("logsigmoid", "Q"))),
    "twice the same": (("add", "Q", "Q"), "Q"),
}


def forms(letter: str) -> Forms:
    return tuple(wrapped(phase, TermForm(0, letter)) for phase in PHASES)


def terms(of: Forms) -> list[Term]:
    return [form.term for form in of]


def test_phases_and_scales() -> None:
    assert terms(forms("Q")) == ["Q", ("neg", "Q"), ("transpose", "Q"), ("neg", ("transpose", "Q"))]
    assert [form.weight for form in forms("Q")] == [0, 1, 1, 2]
    for phase in PHASES:
        assert shifted(shifted(forms("Q"), phase), phase) == forms("Q")
    assert shifted(forms("Q"), NEGATED | TURNED)[0].term == ("neg", ("transpose", "Q"))


def test_a_minus_stands_in_front_of_a_product() -> None:
    right = shifted(forms("K"), TURNED)
    turned = right, shifted(forms("Q"), TURNED)
    product = odd("matmul", (forms("Q"), right), (shifted(right, TURNED), turned[1]))
    assert terms(product) == [
        ("matmul", "Q", ("transpose", "K")),
        ("neg", ("matmul", "Q", ("transpose", "K"))),
        ("matmul", "K", ("transpose", "Q")),
        ("neg", ("matmul", "K", ("transpose", "Q"))),
    ]


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_by_algebra_is_one_term(name: str) -> None:
    term, simple = EQUAL[name]
    assert simplified(term) == simplified(simple) == canonical(simple)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_not_certain_stays(name: str) -> None:
    first, second = DIFFERENT[name]
    assert simplified(first) != simplified(second)
    assert representative(first) != representative(second)


@pytest.mark.parametrize("term", [STANDARD_ATTENTION, SECOND_LAYER, TWELFTH_LAYER])
def test_published_formulas_stay_as_they_are(term: Term) -> None:
    assert simplified(term) == canonical(term)


def test_minuses_and_ties() -> None:
    negated = [shifted(forms(letter), NEGATED) for letter in "QK"]
    assert [form.term for form in distance(*negated)] == [("euclidean", "Q", "K"), ("neg", ("euclidean", "Q", "K"))]
    plain, softplus = log_sigmoid(shifted(forms("Q"), NEGATED))
    assert plain == TermForm(2, ("logsigmoid", ("neg", "Q")))
    assert softplus == TermForm(1, ("neg", ("logsigmoid", ("neg", "Q"))))
    parts = [forms("V"), shifted(forms("K"), NEGATED), shifted(forms("Q"), NEGATED)]
    plain, negated, *_ = total(parts)
    assert plain.term == ("add", "V", ("neg", ("add", "K", "Q")))
    assert negated.term == ("add", ("add", "K", "Q"), ("neg", "V"))
    assert not total([forms("K"), forms("Q")])[0].tied
    assert total([forms("K"), forms("Q"), forms("V")])[0].tied
    assert not total([forms("K"), forms("K"), forms("K")])[0].tied
    assert graph_digest(load_card("autobert-zero-layer-2"))[:16] == "916dc08a13a635ef"
    assert graph_digest(load_card("autobert-zero-layer-12"))[:16] == "75e840881cdbd213"


def random_terms(rng: Generator, number: int) -> list[Term]:
    return [random_term(rng, pick(rng, SHAPES), 4) for _ in range(number)]


def test_values_shapes_and_inputs_stay() -> None:
    rng = derive(0, "terms")
    inputs = {letter: rng.normal(size=(3, 5)) for letter in INPUTS}
    for term in random_terms(rng, 300):
        simple = simplified(term)
        assert shape_of(simple) == shape_of(term)
        assert inputs_of(simple) == inputs_of(term)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(value(simple, inputs), value(term, inputs), rtol=1e-6, atol=1e-9)


def value(term: Term, inputs: dict[str, Array]) -> Array:
    # a scale divides by the root of the head width, whatever it scales
    if isinstance(term, tuple) and term[0] == "scale":
        return np.asarray(value(term[1], inputs) / np.sqrt(5))
    if isinstance(term, str):
        return inputs[term]
    names = dict(zip("QKVP", term[1:], strict=False))
    return compute((term[0], *names), {name: value(operand, inputs) for name, operand in names.items()})


def test_a_simplified_term_is_canonical_and_simplified() -> None:
    rng = derive(1, "terms")
    smaller = 0
    for term in random_terms(rng, 300):
        simple = simplified(term)
        assert simplified(simple) == simple == canonical(simple)
        smaller += size(simple) < size(term)
    assert smaller > 30


def test_whatever_the_laws_are_applied_to_the_result_is_the_same() -> None:
    rng = derive(2, "terms")
    changed = 0
    for term in random_terms(rng, 300):
        other = disguised(term, rng)
        assert simplified(other) == simplified(term)
        changed += other != term
    assert changed > 200


def disguised(term: Term, rng: Generator) -> Term:
    """Write a term in another way, by the laws and by none of the code that undoes them."""
    if isinstance(term, str):
        return _wrapped_twice(term, rng)
    operation, *operands = term
    operands = [disguised(operand, rng) for operand in operands]
    draw = rng.integers(3)
    match operation, draw:
        case ("matmul", 0):
            term = ("transpose", ("matmul", *(("transpose", operand) for operand in reversed(operands))))
        case ("matmul" | "cosine", 1):
            term = ("neg", (operation, ("neg", operands[0]), operands[1]))
        case ("cosine" | "euclidean", 0):
            term = ("transpose", (operation, *reversed(operands)))
        case ("euclidean", 1):
            term = (operation, *(("neg", operand) for operand in operands))
        case ("add", 0):
            term = ("neg", ("add", *(("neg", operand) for operand in operands)))
        case ("add", 1):
            term = ("transpose", ("add", *(("transpose", operand) for operand in reversed(operands))))
        case ("softsign", 0):
            term = ("neg", ("softsign", ("neg", operands[0])))
        case ("softsign" | "logsigmoid" | "scale", 1):
            term = ("transpose", (operation, ("transpose", operands[0])))
        case ("scale", 0) if operands[0][0] in ("add", "matmul"):
            inner, second = operands[0][0], operands[0][2]
            term = (inner, ("scale", operands[0][1]), ("scale", second) if inner == "add" else second)
        case _:
            term = (operation, *operands)
    return _wrapped_twice(term, rng)


def _wrapped_twice(term: Term, rng: Generator) -> Term:
    draw = rng.integers(8)
    return (wrapper := ("neg", "transpose")[draw], (wrapper, term)) if draw < 2 else term


def test_names_of_inputs_do_not_matter_to_the_graph() -> None:
    rng = derive(3, "terms")
    for _ in range(150):
        term: Term = ("add", random_term(rng, ("n", "d"), 4), "Q")
        names = dict(zip(INPUTS, map(str, rng.permutation(INPUTS)), strict=True))
        assert digest(renamed(disguised(term, rng), names)) == digest(term)


def digest(term: Term) -> str:
    return graph_digest(Card(Stack(TokenEmbedding(10, 16), (Block(16, OpGraph(2, 8, term)),))))


def renamed(term: Term, names: dict[str, str]) -> Term:
    return names[term] if isinstance(term, str) else (term[0], *(renamed(operand, names) for operand in term[1:]))
