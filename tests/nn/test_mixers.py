import pytest
import torch
from tests.nn.cases import BRANCHES, CAUSAL, CROSSES, MIXERS, WIDTH
from tests.nn.helpers import close, filled, mask_of, normal
from torch import nn

from formwright.arch.ops import OPERATIONS, Identity, Operation, Transform
from formwright.nn.context import Context
from formwright.nn.mixers import mixer
from formwright.nn.settings import Settings

MEMORY = 12
ALL: dict[str, Operation] = {**MIXERS, **BRANCHES, **CROSSES}


def module_of(operation: Operation, output: int = WIDTH, dtype: torch.dtype = torch.float64) -> nn.Module:
    return filled(mixer(operation, WIDTH, output, MEMORY, Settings()), dtype=dtype)


def context_of(mask: torch.Tensor | None = None, *, causal: bool = False) -> Context:
    return Context(mask, causal=causal, memory=(normal(2, 5, MEMORY), normal(2, 5, MEMORY, seed=2)))


def test_the_cases_hold_every_operation() -> None:
    assert {type(operation) for operation in ALL.values()} == set(OPERATIONS)


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_an_operation_keeps_the_tokens_and_gives_its_width(name: str) -> None:
    operation = ALL[name]
    keeps = isinstance(operation, Identity | Transform) or not getattr(operation, "gated", True)
    output = WIDTH if keeps else 20
    assert module_of(operation, output)(normal(2, 7, WIDTH), context_of()).shape == (2, 7, output)


def test_identity_hands_on_its_very_input() -> None:
    x = normal(2, 7, WIDTH)
    assert module_of(Identity())(x, Context()) is x


@torch.no_grad()
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_what_stands_at_padding_does_not_matter(name: str, left: bool) -> None:
    module, x, mask = module_of(ALL[name]), normal(2, 7, WIDTH), mask_of([7, 3], 7, left=left)
    other = torch.where(mask[..., None], x, normal(2, 7, WIDTH, seed=9) * 100)
    assert close(module(other, context_of(mask))[mask], module(x, context_of(mask))[mask])


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_a_mask_of_real_tokens_alone_changes_nothing(name: str) -> None:
    module, x = module_of(ALL[name]), normal(2, 7, WIDTH)
    assert close(module(x, context_of(mask_of([7, 7], 7))), module(x, context_of()))


@torch.no_grad()
@pytest.mark.parametrize("name", [*CAUSAL, *BRANCHES, *CROSSES])
def test_a_causal_operation_does_not_see_the_future(name: str) -> None:
    module, x = module_of(ALL[name]), normal(2, 7, WIDTH)
    before = module(x, context_of(causal=True))
    for since in range(1, 7):
        changed = torch.cat((x[:, :since], normal(2, 7 - since, WIDTH, seed=since + 5)), 1)
        assert close(module(changed, context_of(causal=True))[:, :since], before[:, :since])


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_gradients_are_finite_for_single_tokens_among_padding(name: str, left: bool) -> None:
    causal = name in CAUSAL or name in BRANCHES
    module, x = module_of(ALL[name]), normal(2, 5, WIDTH).requires_grad_()
    module(x, context_of(mask_of([1, 5], 5, left=left), causal=causal)).sum().backward()
    for gradient in (x.grad, *(parameter.grad for parameter in module.parameters())):
        assert gradient is not None
        assert gradient.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_a_sentence_without_tokens_harms_no_other(name: str) -> None:
    module, x = module_of(ALL[name]), normal(2, 5, WIDTH)
    alone = Context(mask_of([3], 5), memory=tuple(memory[:1] for memory in context_of().memory))
    assert close(module(x, context_of(mask_of([3, 0], 5)))[0, :3], module(x[:1], alone)[0, :3])
