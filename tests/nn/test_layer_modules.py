import math
from collections.abc import Callable

import pytest
import torch
from tests.arch.random_cards import NAMED
from tests.nn.cases import BRANCHES, CAUSAL, CROSSES, MIXERS, WIDTH
from tests.nn.helpers import close, filled, mask_of, normal
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch import ops
from formwright.arch.layers import Block, Branch, Cell, Junction
from formwright.nn.layer_modules import (
    ACTIVATIONS,
    BlockLayer,
    CellLayer,
    FeedForward,
    JunctionLayer,
    layer_module,
    operation_module,
)
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

QUIET, NOISY = Settings(dropout=0.0), Settings(dropout=0.5)
FORMULAS: dict[str, Callable[[float], float]] = {
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "relu": lambda x: max(x, 0.0),
    "swish": lambda x: x / (1 + math.exp(-x)),
    "leaky-relu": lambda x: x if x > 0 else x / 100,
    "squared-relu": lambda x: max(x, 0.0) ** 2,
    "tanh": math.tanh,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_formula(name: str) -> None:
    x = normal(50) * 2
    assert close(ACTIVATIONS[name](x), torch.tensor([FORMULAS[name](float(value)) for value in x], dtype=torch.float64))


@torch.no_grad()
@pytest.mark.parametrize("widths", [(6, 6), (6, 10, 6), (6, 10, 3, 8, 6)])
def test_a_feed_forward_stack_activates_between_its_maps_only(widths: tuple[int, ...]) -> None:
    module, x = filled(FeedForward(widths, "squared-relu")), normal(2, 3, 6)
    weights = list(module.parameters())
    assert len(weights) == 2 * (len(widths) - 1)
    expected = x
    for index in range(0, len(weights), 2):
        expected = expected.clamp(min=0) ** 2 if index else expected
        expected = expected @ weights[index].T + weights[index + 1]
    assert close(module(x, StackContext()), expected)


def normed(x: Tensor, norm: nn.Module) -> Tensor:
    """Normalise by hand."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / centred.square().mean(-1, keepdim=True).sqrt() * norm.weight + norm.bias


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [None, ops.CrossAttention(2, 4)])
@pytest.mark.parametrize("mixer", [ops.Identity(), ops.Attention(2, 4)])
@pytest.mark.parametrize("feed_forward", [(), (10, 12)])
def test_a_block_adds_and_normalises_each_part(norm, cross, mixer, feed_forward) -> None:
    block = Block(8, mixer, feed_forward, "relu", norm, cross)  # type: ignore[arg-type]
    layer, x, context = filled(BlockLayer(block, 6, QUIET)), normal(2, 5, 8), StackContext(memory=(normal(2, 4, 6),))
    assert (layer.mixer is None, layer.cross is None) == (isinstance(mixer, ops.Identity), cross is None)
    expected = x
    for name in ("mixer", "cross", "feed_forward"):
        part = getattr(layer, name)
        if part is not None and norm == "pre":
            expected = expected + part(normed(expected, getattr(layer, f"{name}_norm")), context)
        elif part is not None:
            expected = normed(expected + part(expected, context), getattr(layer, f"{name}_norm"))
    assert close(layer(x, context), expected)


def junction_of(left: Branch, right: Branch | None = None, combine: str = "add") -> JunctionLayer:
    return filled(JunctionLayer(Junction(left, right, combine), (8,), 0, QUIET))  # type: ignore[arg-type]


@torch.no_grad()
@pytest.mark.parametrize("swapped", [False, True])
def test_the_narrower_side_is_padded_with_zero_or_one(swapped: bool) -> None:
    wide, narrow = Branch(0, ops.Convolution(), 8), Branch(0, ops.Convolution(), 5)
    x = normal(2, 3, 8)
    for combine in ("add", "multiply"):
        junction = junction_of(narrow, wide, combine) if swapped else junction_of(wide, narrow, combine)
        first, second = (operation(x, StackContext()) for operation in junction.operations)
        big, small = (second, first) if swapped else (first, second)
        expected = big.clone()
        expected[..., :5] = big[..., :5] + small if combine == "add" else big[..., :5] * small
        assert close(junction([x], StackContext()), expected)


@torch.no_grad()
def test_concatenation_puts_left_before_right_and_one_side_stays_itself() -> None:
    x = normal(2, 3, 8)
    junction = junction_of(Branch(0, ops.Convolution(), 4), Branch(0, ops.GatedLinearUnit(), 5), "concatenate")
    left, right = (operation(x, StackContext()) for operation in junction.operations)
    assert close(junction([x], StackContext()), torch.cat((left, right), -1))
    single = junction_of(Branch(0, ops.Convolution(), 4), None, "multiply")
    assert close(single([x], StackContext()), single.operations[0](x, StackContext()))


@torch.no_grad()
def test_branches_that_normalise_one_state_share_the_norm() -> None:
    x = normal(2, 3, 8)
    both = junction_of(Branch(0, ops.Identity(), 8, norm=True), Branch(0, ops.Identity(), 8, norm=True))
    assert len(list(both.norms)) == 1
    assert close(both([x], StackContext()), 2 * normed(x, both.norms["0"]))
    one = junction_of(Branch(0, ops.Identity(), 8, norm=True), Branch(0, ops.Identity(), 8))
    assert close(one([x], StackContext()), x + normed(x, one.norms["0"]))


@torch.no_grad()
def test_a_branch_activates_after_its_operation() -> None:
    junction, x = junction_of(Branch(0, ops.Convolution(), 6, activation="squared-relu")), normal(2, 3, 8)
    assert close(junction([x], StackContext()), F.relu(junction.operations[0](x, StackContext())).square())


@torch.no_grad()
def test_a_cell_hands_states_to_the_junctions_that_read_them() -> None:
    cell = Cell(
        8,
        (
            Junction(Branch(0, ops.SeparableConvolution(3), 6, norm=True), Branch(0, ops.Identity(), 8)),
            Junction(Branch(1, ops.GatedLinearUnit(), 5), Branch(0, ops.Convolution(), 4), "concatenate"),
            Junction(Branch(2, ops.Identity(), 9), Branch(1, ops.Convolution(3), 9, norm=True), "multiply"),
        ),
    )
    layer, x, context = filled(CellLayer(cell, 0, QUIET)), normal(2, 5, 8), StackContext()
    first, second, third = (part for part in layer.junctions if isinstance(part, JunctionLayer))
    one = F.pad(first.operations[0](normed(x, first.norms["0"]), context), (0, 2)) + x
    two = torch.cat((second.operations[0](one, context), second.operations[1](x, context)), -1)
    three = two * third.operations[1](normed(one, third.norms["1"]), context)
    assert close(layer(x, context), three)


@torch.no_grad()
def test_dropout_acts_in_training_only_and_never_on_an_identity_branch() -> None:
    x, context = normal(2, 5, 8), StackContext()
    cell = Cell(8, (Junction(Branch(0, ops.Identity(), 8), Branch(0, ops.Convolution(), 8), "concatenate"),))
    for layer in (layer_module(cell, 0, NOISY), layer_module(Block(8, ops.Attention(2, 4), (12,)), 0, NOISY)):
        filled(layer)
        assert torch.equal(layer(x, context), layer(x, context))
        layer.train()
        assert not torch.equal(layer(x, context), layer(x, context))
    noisy = filled(layer_module(cell, 0, NOISY)).train()
    assert torch.equal(noisy(x, context)[..., :8], x)
    assert 0.2 < float((noisy(x, context)[..., 8:] == 0).double().mean()) < 0.8


MEMORY = 12
ALL: dict[str, ops.Operation] = {**MIXERS, **BRANCHES, **CROSSES}


def module_of(operation: ops.Operation, output: int = WIDTH, dtype: torch.dtype = torch.float64) -> nn.Module:
    return filled(operation_module(operation, WIDTH, output, MEMORY, Settings()), dtype=dtype)


def context_of(mask: torch.Tensor | None = None, *, causal: bool = False) -> StackContext:
    return StackContext(mask, causal=causal, memory=(normal(2, 5, MEMORY), normal(2, 5, MEMORY, seed=2)))


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_an_operation_keeps_the_tokens_and_gives_its_width(name: str) -> None:
    operation = ALL[name]
    keeps = isinstance(operation, ops.Identity | ops.Transform) or not getattr(operation, "gated", True)
    output = WIDTH if keeps else 20
    assert module_of(operation, output)(normal(2, 7, WIDTH), context_of()).shape == (2, 7, output)


def test_the_cases_hold_every_operation_and_identity_changes_nothing() -> None:
    assert {type(operation) for operation in ALL.values()} == NAMED
    x = normal(2, 7, WIDTH)
    assert module_of(ops.Identity())(x, StackContext()) is x
    layer, x = layer_module(Block(8, ops.Identity()), 0, NOISY), normal(2, 5, 8)
    assert not list(layer.parameters())
    assert layer.train()(x, StackContext()) is x


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_a_mask_of_real_tokens_alone_changes_nothing(name: str) -> None:
    module, x = module_of(ALL[name]), normal(2, 7, WIDTH)
    assert close(module(x, context_of(mask_of([7, 7], 7))), module(x, context_of()))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_gradients_are_finite_for_single_tokens_among_padding(name: str, left: bool) -> None:
    causal = name in CAUSAL or name in BRANCHES
    module, x = module_of(ALL[name]), normal(2, 5, WIDTH).requires_grad_()
    module(x, context_of(mask_of([1, 5], 5, left=left), causal=causal)).sum().backward()
    for gradient in (x.grad, *(parameter.grad for parameter in module.parameters())):
        assert gradient.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_a_sentence_without_tokens_harms_no_other(name: str) -> None:
    module, x = module_of(ALL[name]), normal(2, 5, WIDTH)
    alone = StackContext(mask_of([3], 5), memory=tuple(memory[:1] for memory in context_of().memory))
    assert close(module(x, context_of(mask_of([3, 0], 5)))[0, :3], module(x[:1], alone)[0, :3])
