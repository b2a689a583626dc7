"""Op graphs never overflow, and computing them simplified changes nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from tests.nn.helpers import close, filled, mask_of, normal
from torch import Tensor

from formwright.arch.ops import OpGraph
from formwright.arch.primitives import BINARY, UNARY, Term
from formwright.arch.simplify import simplified
from formwright.core.rng import derive
from formwright.nn.operations.op_graph import OpGraphAttention
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
from formwright.space import Expressions
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

HEADS, SIZE, WIDTH, TOKENS = 2, 4, 8, 6
SIZES = (0.0, 1e-30, 1e-6, 1.0, 1e3, 1e6)
LENGTHS = [6, 4, 1, 0]  # the last sentence is nothing but padding


def inputs(rng: Generator, choice: tuple[float, ...]) -> Tensor:
    """Draw sentences of one size, or of numbers of all sizes; in some all tokens are equal, with no distance."""
    signs = torch.from_numpy(rng.normal(size=(len(LENGTHS), TOKENS, WIDTH)))
    sizes = rng.choice(choice, size=signs.shape if rng.random() < 0.5 else ())
    x = signs * torch.from_numpy(sizes)
    if rng.random() < 0.2:
        x = x[:, :1].expand_as(x)
    return x.float().contiguous()


def unsafe(term: Term, rng: Generator, *, eager: bool, padded: bool) -> list[str]:
    """Name what is not finite after a pass forwards and one backwards."""
    graph, settings = OpGraph(HEADS, SIZE, term), Settings(eager=eager)
    module = filled(OpGraphAttention(graph, WIDTH, WIDTH, 0, settings), dtype=torch.float32)
    # what cuts off large numbers stands larger ones still
    x = inputs(rng, (*SIZES, 1e12) if module.program.grows else SIZES).requires_grad_()
    result = module(x, StackContext(mask_of(LENGTHS, TOKENS) if padded else None))
    result.backward(torch.from_numpy(rng.normal(size=result.shape) * rng.choice(SIZES)).float())
    found = {"result": result, "input": x.grad}
    found |= {name: parameter.grad for name, parameter in module.named_parameters()}
    return [name for name, tensor in found.items() if tensor is not None and not tensor.isfinite().all()]


def graphs(number: int, largest: int) -> list[tuple[Term, Generator]]:
    """Draw graphs of all sizes up to so many operations, with a generator each for what enters it."""
    part, rngs = Expressions(largest), [derive(0, "safe", index) for index in range(number)]
    return [(part.sample(rng, "gene"), rng) for rng in rngs]


def faults(number: int, largest: int) -> list[str]:
    return [
        f"{name} of {term}, {eager=}, {padded=}"
        for index, (term, rng) in enumerate(graphs(number, largest))
        for eager, padded in [((index % 2) == 0, (index % 3) != 0)]
        for name in unsafe(term, rng, eager=eager, padded=padded)
    ]


def test_random_graphs_stand_extreme_inputs() -> None:
    assert faults(60, 7) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_2000_random_graphs_stand_extreme_inputs() -> None:
    assert faults(2_000, 12) == []


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(
    "term", [STANDARD_ATTENTION, SECOND_LAYER, TWELFTH_LAYER], ids=["standard", "second", "twelfth"]
)
def test_known_attentions_stand_extreme_inputs(term: Term, eager: bool) -> None:
    for seed in range(20):
        assert unsafe(term, default_rng(seed), eager=eager, padded=seed % 2 == 0) == []


def chain() -> Term:
    """Multiply a product by itself until it has the power of 256."""
    square: Term = ("matmul", "Q", ("transpose", "K"))
    for _ in range(8):
        square = ("matmul", square, square)
    return ("matmul", square, "V")


@pytest.mark.parametrize("eager", [True, False])
def test_the_longest_chains_of_products_do_not_overflow(eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unsafe(chain(), default_rng(3), eager=eager, padded=True) == []
    monkeypatch.setattr("formwright.nn.operations.op_graph.bounded", lambda value, *_: value)
    assert unsafe(chain(), default_rng(3), eager=eager, padded=True) != [], "without bounds they do"


def test_the_random_graphs_use_every_primitive() -> None:
    written = " ".join(str(term) for term, _ in graphs(60, 7))
    assert all(f"'{name}'" in written for name in (*UNARY, *BINARY))


def test_sound_numbers_are_not_cut_off() -> None:
    module = filled(
        OpGraphAttention(
            OpGraph(HEADS, SIZE, ("matmul", "Q", ("matmul", ("transpose", "K"), "V"))), 8, 8, 0, Settings()
        )
    )
    double = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1e3
    exact = module(double, StackContext()).detach()
    single = module.float()(double.float(), StackContext()).detach()
    assert exact.abs().max() > 1e7
    assert torch.allclose(single.double(), exact, rtol=1e-3, atol=1e-3 * float(exact.abs().max()))


PART = Expressions(9)


def module(term: Term) -> OpGraphAttention:
    # equal inputs in equal order: a simplified term has the inputs of the term, so that the weights are the same
    return filled(OpGraphAttention(OpGraph(HEADS, SIZE, term), WIDTH, WIDTH, 0, Settings()))


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
