from collections.abc import Callable

import pytest
import torch
from tests.nn.helpers import close, filled, mask_of, normal
from tests.nn.operations.test_attention import slow_row
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch import ops
from formwright.nn.operations.convolution import (
    DepthwiseSeparable,
    GatedUnit,
    Lightweight,
    PlainConvolution,
    SpanDynamicConvolution,
    StackedSeparable,
    pad_tokens,
)
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

KERNELS = list(range(1, 8))
Slow = Callable[[Tensor], Tensor]


def window(i: int, kernel: int, causal: bool, length: int) -> list[tuple[int, int]]:
    """List which tap of a kernel meets which token of a sentence; what lies outside the sentence is zero."""
    first = i - (kernel - 1 if causal else (kernel - 1) // 2)
    return [(tap, first + tap) for tap in range(kernel) if 0 <= first + tap < length]


def slow_depthwise(x: Tensor, kernels: Tensor, causal: bool) -> Tensor:
    """Convolve each channel of one sentence (tokens, channels) with its kernel, tap by tap."""
    result = torch.zeros_like(x)
    for i in range(len(x)):
        for tap, j in window(i, kernels.shape[1], causal, len(x)):
            result[i] += kernels[:, tap] * x[j]
    return result


@torch.no_grad()
def agrees(module: nn.Module, slow: Slow, causal: bool, width: int = 6) -> bool:
    """Tell whether a module does to every sentence of padded batches what `slow` does to it alone."""
    x, lengths = normal(3, 9, width), [9, 4, 1]
    whole = module(x, StackContext(causal=causal))
    verdicts = [close(whole[sentence], slow(x[sentence])) for sentence in range(3)]
    for left in (False, True):
        mask = mask_of(lengths, 9, left=left)
        result = module(x, StackContext(mask, causal=causal))
        verdicts += [close(result[i][mask[i]], slow(x[i][mask[i]])) for i in range(3)]
    return all(verdicts)


@pytest.mark.parametrize("kernel", KERNELS)
def test_padding_keeps_the_number_of_tokens(kernel: int) -> None:
    x = torch.ones(1, 5, 1)
    assert pad_tokens(x, kernel, StackContext(causal=True))[0, :, 0].tolist() == [0.0] * (kernel - 1) + [1.0] * 5
    both = pad_tokens(x, kernel, StackContext())[0, :, 0].tolist()
    assert both == [0.0] * ((kernel - 1) // 2) + [1.0] * 5 + [0.0] * (kernel // 2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_plain_convolution_is_the_slow_loop(kernel: int, causal: bool) -> None:
    module = filled(PlainConvolution(ops.Convolution(kernel), 6, 5, 0, Settings()))

    def slow(x: Tensor) -> Tensor:
        rows = [
            sum((module.kernel[:, :, tap] @ x[j] for tap, j in window(i, kernel, causal, len(x))), module.bias)
            for i in range(len(x))
        ]
        return torch.stack(rows)

    assert agrees(module, slow, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_depthwise_separable_convolution_is_the_slow_loop(kernel: int, causal: bool) -> None:
    module = filled(DepthwiseSeparable(kernel, 6, 5))
    assert agrees(module, lambda x: module.pointwise(slow_depthwise(x, module.kernel, causal)), causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("stacked", [1, 2, 3])
def test_stacked_separable_convolutions_follow_each_other_with_relu_between(stacked: int, causal: bool) -> None:
    module = filled(StackedSeparable(ops.SeparableConvolution(5, stacked), 6, 4, 0, Settings()))

    def slow(x: Tensor) -> Tensor:
        for index, part in enumerate(module.parts):
            x = part.pointwise(slow_depthwise(x.clamp(min=0) if index else x, part.kernel, causal))
        return x

    assert len(module.parts) == stacked
    assert agrees(module, slow, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("kernel", "heads"), [(1, 1), (2, 2), (3, 3), (4, 6), (5, 1), (6, 2), (7, 3)])
def test_lightweight_convolution_is_the_slow_loop(kernel: int, heads: int, gated: bool, causal: bool) -> None:
    module = filled(Lightweight(ops.LightweightConvolution(kernel, heads, gated), 6, 6, 0, Settings()), spread=1.0)
    soft = torch.stack([module.kernel[channel // (6 // heads)].softmax(0) for channel in range(6)])

    def slow(x: Tensor) -> Tensor:
        if module.gated is None or module.output is None:
            return slow_depthwise(x, soft, causal)
        gate = F.glu(torch.cat((module.gated.value(x), module.gated.gate(x)), -1))
        return module.output(slow_depthwise(gate, soft, causal))  # type: ignore[no-any-return]

    assert agrees(module, slow, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relative", [None, ops.Relative(5)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_span_dynamic_convolution_is_the_slow_loop(kernel: int, relative: ops.Relative | None, causal: bool) -> None:
    module = filled(SpanDynamicConvolution(ops.DynamicConvolution(kernel, 2, 3, relative), 8, 7, 0, Settings()))

    def slow(x: Tensor) -> Tensor:
        query, value = module.query(x), module.value(x).unflatten(-1, (2, 3))
        span = module.span.pointwise(slow_depthwise(x, module.span.kernel, causal))
        kernels = module.generator(span * query).unflatten(-1, (2, kernel)).softmax(-1)
        mixed = torch.zeros_like(value)
        for i in range(len(x)):
            for head in range(2):
                for tap, j in window(i, kernel, causal, len(x)):
                    mixed[i, head] += kernels[i, head, tap] * value[j, head]
                if module.term is not None:
                    keys = [j for j in range(len(x)) if j <= i or not causal]
                    table = module.term.positions.keys[0][[slow_row(i, j, 5) for j in keys]]
                    scores = table @ query[i].unflatten(-1, (2, 3))[head] / 3**0.5
                    mixed[i, head] += scores.softmax(0) @ value[keys, head]
        return module.output(mixed.flatten(1))  # type: ignore[no-any-return]

    assert agrees(module, slow, causal, width=8)


@torch.no_grad()
def test_a_gated_unit_is_torch_glu() -> None:
    module, x = filled(GatedUnit(ops.GatedLinearUnit(), 6, 5, 0, Settings())), normal(2, 3, 6)
    packed = F.linear(
        x, torch.cat((module.value.weight, module.gate.weight)), torch.cat((module.value.bias, module.gate.bias))
    )
    assert close(module(x, StackContext()), F.glu(packed))
