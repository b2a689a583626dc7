"""The primitive operations of op graphs on tensors.

A value is (batch, heads, rows, columns), where rows and columns are tokens or features. Whatever sums over tokens
leaves padding out, so a sentence's result does not depend on what it is batched with. Padding is hidden as a key, never
as a query: it has a result too, which nobody reads.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.arch.primitives import Shape
from formwright.nn.context import Context

_SMALLEST = 1e-12  # keeps the gradient of a root finite

# Powers of the largest number of a precision, so that the product of any two values and any gradient times any value is
# finite, summed over 100,000 tokens. In single precision: 1e5, 1e15 and 1e12, which no sound training comes near.
_INPUT, _VALUE, _GRADIENT = 0.13, 0.39, 0.31
_LEAST = 1e4  # in half precision the powers would be too small to compute with


def bounded_input(value: Tensor) -> Tensor:
    """Keep an input of a graph, and its gradient, within what its operations can stand."""
    return _bounded(value, _INPUT)


def bounded(value: Tensor) -> Tensor:
    """Keep the result of an operation that can grow without end, and its gradient, finite."""
    return _bounded(value, _VALUE)


def _bounded(value: Tensor, power: float) -> Tensor:
    most, steepest = (max(_LEAST, torch.finfo(value.dtype).max ** one) for one in (power, _GRADIENT))
    value = value.clamp(-most, most)
    if value.requires_grad:
        value.register_hook(lambda gradient: gradient.clamp(-steepest, steepest))
    return value


def widest(device: torch.device) -> torch.dtype:
    """Give the most precise numbers that a device has: Apple's have no doubles."""
    return torch.float32 if device.type == "mps" else torch.float64


def attend(queries: Tensor, keys: Tensor, values: Tensor, scale: float, context: Context) -> Tensor:
    """Compute softmax(queries · keysᵀ x scale) · values with torch's fused kernel."""
    visible = context.visible(queries.shape[2], queries.device)
    return F.scaled_dot_product_attention(queries, keys, values, visible, scale=scale)


def _real(value: Tensor, shape: Shape, axis: int, context: Context) -> Tensor:
    """Zero what stands at padding along one axis, if that axis is tokens."""
    if shape[axis] != "n" or context.mask is None:
        return value
    mask = context.mask[:, None, :, None] if axis == 0 else context.mask[:, None, None, :]
    return value * mask.to(value.dtype)


def _softmax(values: list[Tensor], shapes: tuple[Shape, ...], context: Context) -> Tensor:
    value = values[0]
    if shapes[0][1] == "n" and context.mask is not None:
        # not minus infinity, of which a sentence of nothing but padding would make no numbers
        value = value.masked_fill(~context.mask[:, None, None, :], torch.finfo(value.dtype).min)
    return value.softmax(-1)


def _matmul(values: list[Tensor], shapes: tuple[Shape, ...], context: Context) -> Tensor:
    return values[0] @ _real(values[1], shapes[1], 0, context)


def _cosine(values: list[Tensor], shapes: tuple[Shape, ...], context: Context) -> Tensor:
    left, right = (_real(value, shape, 1, context) for value, shape in zip(values, shapes, strict=True))
    return F.normalize(left, dim=-1, eps=1e-6) @ F.normalize(right, dim=-1, eps=1e-6).transpose(-1, -2)


def _euclidean(values: list[Tensor], shapes: tuple[Shape, ...], context: Context) -> Tensor:
    # Doubles, because the squares of near vectors cancel: in single precision a distance of 0 would come out as noise.
    wide = [value.to(widest(value.device)) for value in values]
    left, right = (_real(value, shape, 1, context) for value, shape in zip(wide, shapes, strict=True))
    squares = left.square().sum(-1)[..., :, None] + right.square().sum(-1)[..., None, :]
    return (squares - 2 * left @ right.transpose(-1, -2)).clamp(min=_SMALLEST).sqrt().to(values[0].dtype)


APPLY: dict[str, Callable[[list[Tensor], tuple[Shape, ...], Context], Tensor]] = {
    "neg": lambda values, *_: -values[0],
    "transpose": lambda values, *_: values[0].transpose(-1, -2),
    "softmax": _softmax,
    "logsigmoid": lambda values, *_: F.logsigmoid(values[0]),
    "softsign": lambda values, *_: F.softsign(values[0]),
    "add": lambda values, *_: values[0] + values[1],
    "matmul": _matmul,
    "cosine": _cosine,
    "euclidean": _euclidean,
}
