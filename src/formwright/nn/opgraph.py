"""Attention interpreted from a graph of primitive operations.

A value is (batch, heads, rows, columns), where rows and columns are tokens or features. Whatever sums over tokens
leaves padding out, so a sentence's result does not depend on what it is batched with.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.ops import OpGraph
from formwright.arch.primitives import Shape, Term, shape_of
from formwright.nn.attention import join_heads, split_heads
from formwright.nn.context import Context

_SMALLEST = 1e-12  # keeps the gradient of a root finite


class OpGraphAttention(nn.Module):
    """Run one graph: project the input once for each letter, compute every distinct subterm once, project back."""

    def __init__(self, operation: OpGraph, width: int, output: int) -> None:
        super().__init__()
        inner = operation.heads * operation.head_width
        self.heads, self.head_width, self.term = operation.heads, operation.head_width, operation.term
        self.inputs = nn.ModuleDict({letter: nn.Linear(width, inner) for letter in operation.inputs})
        self.output = nn.Linear(inner, output)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        done: dict[Term, Tensor] = {
            letter: split_heads(project(x), self.heads) for letter, project in self.inputs.items()
        }
        return self.output(join_heads(self._value(self.term, done, context)))

    def _value(self, term: Term, done: dict[Term, Tensor], context: Context) -> Tensor:
        if term not in done:
            name, operands = str(term[0]), term[1:]
            values = [self._value(operand, done, context) for operand in operands]
            if name == "scale":
                done[term] = values[0] * self.head_width**-0.5
            else:
                done[term] = _APPLY[name](values, [shape_of(operand) for operand in operands], context)
        return done[term]


def _real(value: Tensor, shape: Shape, axis: int, context: Context) -> Tensor:
    """Zero what stands at padding along one axis, if that axis is tokens."""
    if shape[axis] != "n" or context.mask is None:
        return value
    mask = context.mask[:, None, :, None] if axis == 0 else context.mask[:, None, None, :]
    return value * mask.to(value.dtype)


def _softmax(values: list[Tensor], shapes: list[Shape], context: Context) -> Tensor:
    value = values[0]
    if shapes[0][1] == "n" and context.mask is not None:
        value = value.masked_fill(~context.mask[:, None, None, :], float("-inf"))
    return value.softmax(-1)


def _matmul(values: list[Tensor], shapes: list[Shape], context: Context) -> Tensor:
    return values[0] @ _real(values[1], shapes[1], 0, context)


def _cosine(values: list[Tensor], shapes: list[Shape], context: Context) -> Tensor:
    left, right = (_real(value, shape, 1, context) for value, shape in zip(values, shapes, strict=True))
    return F.normalize(left, dim=-1, eps=1e-6) @ F.normalize(right, dim=-1, eps=1e-6).transpose(-1, -2)


def _euclidean(values: list[Tensor], shapes: list[Shape], context: Context) -> Tensor:
    # Doubles, because the squares of near vectors cancel: in single precision a distance of 0 would come out as noise.
    left, right = (_real(value.double(), shape, 1, context) for value, shape in zip(values, shapes, strict=True))
    squares = left.square().sum(-1)[..., :, None] + right.square().sum(-1)[..., None, :]
    return (squares - 2 * left @ right.transpose(-1, -2)).clamp(min=_SMALLEST).sqrt().to(values[0].dtype)


_APPLY: dict[str, Callable[[list[Tensor], list[Shape], Context], Tensor]] = {
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
