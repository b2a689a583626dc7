"""A simplified op graph computes what the graph itself does, alone and in a padded batch."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from tests.nn.helpers import close, filled, mask_of, normal

from formwright.arch.ops import OpGraph
from formwright.arch.primitives import Term
from formwright.arch.simplify import simplified
from formwright.nn.context import StackContext
from formwright.nn.opgraph import OpGraphAttention
from formwright.space import Expressions

HEADS, SIZE, WIDTH, TOKENS = 2, 4, 8, 6
PART = Expressions(9)


def module(term: Term) -> OpGraphAttention:
    # equal inputs in equal order: a simplified term has the inputs of the term, so that the weights are the same
    return filled(OpGraphAttention(OpGraph(HEADS, SIZE, term), WIDTH, WIDTH))


@torch.no_grad()
@given(seed=st.integers(0, 2**32 - 1), by=st.sampled_from(["design", "gene"]), padded=st.booleans())
def test_simplification_does_not_change_what_is_computed(seed: int, by: str, padded: bool) -> None:
    term = PART.sample(default_rng(seed), by)  # type: ignore[arg-type]
    assert list(module(term).inputs) == list(module(simplified(term)).inputs)
    x, mask = normal(3, TOKENS, WIDTH, seed=seed), mask_of([6, 1, 4], TOKENS)
    context = StackContext(mask) if padded else StackContext()
    expected, found = module(term)(x, context), module(simplified(term))(x, context)
    real = mask if padded else torch.ones_like(mask)
    assert close(found[real], expected[real], 1e-5)
