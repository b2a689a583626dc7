from collections.abc import Iterator

import pytest
from numpy.random import default_rng
from tests.cost.slow_products import run

from formwright.arch.layers import Block
from formwright.arch.ops import LightweightConvolution
from formwright.arch.primitives import Term, canonical, inputs_of, shape_of, size
from formwright.cost import params_attention
from formwright.space import Case, Expressions, Fields, Repeat
from formwright.space.design import By
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autobert_zero import KERNELS, SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

FORMULAS = {"standard": STANDARD_ATTENTION, "layer 2": SECOND_LAYER, "layer 12": TWELFTH_LAYER}
EXPRESSIONS = Expressions(12)


@pytest.mark.parametrize("samples", [500, pytest.param(5_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("by", ["design", "gene"])
def test_samples_hold_no_illegal_graph(by: By, samples: int) -> None:
    rng = default_rng(2)
    for number in range(samples):
        term = EXPRESSIONS.sample(rng, by)
        assert shape_of(term) == ("n", "d")
        assert 1 <= size(term) <= 12
        assert 2 <= len(inputs_of(term)) <= 4
        if number < 100:  # and it runs
            assert run(term, 5, 3)[0] == (5, 3)


def layer_part(name: str) -> Repeat:
    """Give the part of a space that its layers are chosen from."""
    return dict(load_space(name).root.fields)["layers"]


@pytest.mark.parametrize("name", ["autobert-zero", "autobert-zero-nano"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_standard_attention_and_the_published_formulas_are_expressible(name: str, formula: str) -> None:
    choice = Case("attention", canonical(FORMULAS[formula]))
    assert layer_part(name).part.contains(choice)
    space = load_space(name)
    design = Fields.of(layers=(choice,) * layer_part(name).lengths[0])
    assert space.contains(design)
    assert space.card(design).stacks[0].layers[0].mixer.term == choice.value


@pytest.mark.parametrize(("formula", "operations"), [("standard", 5), ("layer 2", 9), ("layer 12", 7)])
def test_the_formulas_have_the_documented_sizes(formula: str, operations: int) -> None:
    assert (size(FORMULAS[formula]), run(FORMULAS[formula], 5, 3)[0]) == (operations, (5, 3))


@pytest.mark.parametrize(("number", "maps"), [(2, 2), (12, 3)])
def test_published_layers_share_inputs(number: int, maps: int) -> None:
    card = load_card(f"autobert-zero-layer-{number}")
    assert (len(card.stacks[0].layers), params_attention(card)) == (1, maps * (768 * 768 + 768))


def subterms(term: Term) -> Iterator[Term]:
    yield term
    for operand in term[1:] if isinstance(term, tuple) else ():
        yield from subterms(operand)


def test_published_and_nano_spaces() -> None:
    space = load_space("autobert-zero")
    assert space.count() == (EXPRESSIONS.count() + 7) ** 12 > 10**20
    design = Fields.of(layers=tuple(Case("convolution", kernel) for kernel in (*KERNELS, *KERNELS)[:12]))
    assert space.contains(design)
    assert space.card(design).stacks[0].layers[6] == Block(768, LightweightConvolution(65, 12), (3072,))
    space = load_space("autobert-zero-nano")
    assert space.count() == (Expressions(9).count() + 6) ** 4
    card = space.card(next(space.enumerate()))
    assert [layer.width for layer in card.stacks[0].layers] == [64] * 4
    assert not layer_part("autobert-zero-nano").part.contains(Case("convolution", 65))
    transposed = ("transpose", "K")
    assert ("neg", ("logsigmoid", ("neg", transposed))) in set(subterms(SECOND_LAYER))
