"""Programs make every value once, and know attention when they see it."""

import pytest
from numpy.random import default_rng

from formwright.arch.primitives import Term, inputs_of
from formwright.nn.opgraph_program import ATTEND, Program, compiled
from formwright.space import Expressions
from formwright.space.zoo.autobert_zero import SECOND_LAYER, TWELFTH_LAYER

SCORES: Term = ("matmul", "Q", ("transpose", "K"))


def attention(scores: Term, values: Term = "V") -> Term:
    return ("matmul", ("softmax", scores), values)


def operations(program: Program) -> list[str]:
    return [step.operation for step in program.steps]


@pytest.mark.parametrize(
    "scores",
    [
        ("scale", SCORES),
        ("matmul", ("scale", "Q"), ("transpose", "K")),
        ("transpose", ("scale", ("matmul", "K", ("transpose", "Q")))),
        ("scale", ("neg", ("matmul", "Q", ("neg", ("transpose", "K"))))),
    ],
    ids=str,
)
def test_standard_attention_is_one_fused_step_however_it_is_written(scores: Term) -> None:
    (step,) = compiled(attention(scores)).steps
    assert (step.operation, step.operands, step.scales) == (ATTEND, (0, 1, 2), 1)


def test_scales_are_counted() -> None:
    assert [compiled(attention(scores)).steps[-1].scales for scores in (SCORES, ("scale", ("scale", SCORES)))] == [0, 2]


@pytest.mark.parametrize(("term", "others"), [(SECOND_LAYER, 6), (TWELFTH_LAYER, 2)], ids=["second", "twelfth"])
def test_the_published_layers_are_fused_around_what_is_new_in_them(term: Term, others: int) -> None:
    found = operations(compiled(term))
    assert (found.count(ATTEND), len(found)) == (1, 1 + others)
    assert not {"softmax", "matmul"} & set(found)


@pytest.mark.parametrize(
    "term",
    [
        ("add", attention(SCORES), ("matmul", ("transpose", ("softmax", SCORES)), "V")),  # its weights are used again
        ("add", attention(("scale", SCORES)), ("matmul", ("softsign", ("scale", SCORES)), "V")),  # its scores are
        attention(SCORES, ("matmul", "Q", ("matmul", ("transpose", "K"), "V"))),  # values may be of any size
        ("matmul", "Q", ("softmax", ("matmul", ("transpose", "K"), "V"))),  # over features
        ("matmul", "Q", attention(("matmul", ("transpose", "K"), "V"), ("matmul", ("transpose", "K"), "V"))),
    ],
    ids=str,
)
def test_what_is_not_quite_attention_is_not_fused(term: Term) -> None:
    assert ATTEND not in operations(compiled(term))


def test_an_eager_program_is_the_term_as_it_is_written() -> None:
    written = ("neg", ("neg", attention(("scale", SCORES))))
    found = operations(compiled(written, fused=False))
    assert found == ["transpose", "matmul", "scale", "softmax", "matmul", "neg", "neg"]
    assert operations(compiled(written)) == [ATTEND]


def test_simplifying_must_not_cost_products() -> None:
    term = ("matmul", ("add", SCORES, ("transpose", SCORES)), "V")  # simplified, both summands are products
    assert operations(compiled(term)).count("matmul") == 2


def test_an_input_alone_needs_no_step() -> None:
    assert compiled("P") == compiled(("neg", ("neg", "P"))) == Program((), 0)


@pytest.mark.parametrize("fused", [True, False])
def test_every_value_is_made_once_and_from_earlier_ones(fused: bool) -> None:
    part, rng = Expressions(6), default_rng(0)
    for _ in range(100):
        term = part.sample(rng, "gene")
        program, first = compiled(term, fused=fused), len(inputs_of(term))
        assert len({(step.operation, step.operands) for step in program.steps}) == len(program.steps)
        assert all(max(step.operands) < first + place for place, step in enumerate(program.steps))
        assert program.result == first + len(program.steps) - 1 or not program.steps
