"""Attention computed from a graph of primitive operations, as a flat program that is compiled once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from formwright.arch.ops import OpGraph
from formwright.arch.primitives import INPUT_SHAPE, PRODUCTS, Shape, Term, distinct, inputs_of, shape_of
from formwright.arch.simplify import simplified
from formwright.nn.operations.attention import KeepMaps, join_heads, split_heads
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

ATTEND = "attend"  # softmax(queries · keysᵀ / √d ...) · values in one step, by torch's fused kernel
GROWING = PRODUCTS | {ATTEND}  # cosines do not grow, but their gradients do
_BETWEEN_0_AND_1 = ("softmax", "softsign", "cosine")  # but for the sign


@dataclass(frozen=True)
class Step:
    """Apply an operation to earlier values; `scales` counts the divisions by √d that a fused attention does."""

    operation: str
    operands: tuple[int, ...]
    shapes: tuple[Shape, ...]  # of the operands
    scales: int = 0


@dataclass(frozen=True)
class OpGraphProgram:
    """Make values one after the other, after those of the inputs in the order Q, K, V, P; one is the result."""

    steps: tuple[Step, ...]
    result: int

    @property
    def grows(self) -> bool:
        """Return whether products of products can make numbers of any size, unlike one ordinary attention."""
        return sum(step.operation in GROWING for step in self.steps) > 1


def compiled(term: Term, *, fused: bool = True) -> OpGraphProgram:
    """Compile a term.

    A fused program computes the simplified term, unless that takes more products, and recognises attention in it.
    Otherwise the steps are the operations as they are written.
    """
    terms = (simplified(term), term) if fused else (term,)
    chosen = min(terms, key=lambda one: sum(part[0] in PRODUCTS for part in distinct(one)))
    return _Compiler(chosen, inputs_of(term), fused).program()


class _Compiler:
    def __init__(self, term: Term, inputs: tuple[str, ...], fused: bool) -> None:
        self.term, self.fused = term, fused
        self.places: dict[Term, int] = {letter: place for place, letter in enumerate(inputs)}
        self.steps: list[Step] = []
        # how many distinct values read each one: what others read too has to be computed anyway
        self.readers = Counter(operand for part in distinct(term) for operand in set(part[1:]))

    def program(self) -> OpGraphProgram:
        result = self._place(self.term)
        return OpGraphProgram(tuple(self.steps), result)

    def _place(self, term: Term) -> int:
        """Return the place of a value, after all steps that make it."""
        if term not in self.places:
            operation, operands, scales = self._recognised(term) or (str(term[0]), term[1:], 0)
            taken = tuple(self._place(operand) for operand in operands)
            self.steps.append(Step(operation, taken, tuple(map(shape_of, operands)), scales))
            self.places[term] = len(self.places)
        return self.places[term]

    def _recognised(self, term: Term) -> tuple[str, tuple[Term, ...], int] | None:
        """Take a term for softmax(a·b / √d)·c with a and c of the shape of inputs; None where it is something else."""
        if not self.fused or term[0] != "matmul" or term[1][0] != "softmax" or self.readers[term[1]] > 1:
            return None
        scores, values, scales = term[1][1], term[2], 0
        while scores[0] == "scale" and self.readers[scores] == 1:
            scores, scales = scores[1], scales + 1
        if scores[0] != "matmul" or self.readers[scores] > 1:
            return None
        queries, turned = scores[1], scores[2]
        keys: Term = turned[1] if turned[0] == "transpose" else ("transpose", turned)
        operands = (queries, keys, values)
        fits = all(shape_of(operand) == INPUT_SHAPE and _tame(operand) for operand in operands)
        return (ATTEND, operands, scales) if fits else None


def _tame(term: Term) -> bool:
    """Return whether a value stays about as large as the inputs: nothing is clamped inside the fused kernel."""
    if isinstance(term, str) or term[0] in _BETWEEN_0_AND_1:
        return True
    return term[0] not in PRODUCTS and all(map(_tame, term[1:]))


_SMALLEST = 1e-12  # keeps the gradient of a root finite

# Powers of the largest number of a precision, so that the product of any two values and any gradient times any value is
# finite, summed over 100,000 tokens. In single precision: 1e5, 1e15 and 1e12, which no sound training comes near.
_INPUT, _VALUE, _GRADIENT = 0.13, 0.39, 0.31
_LEAST = 1e4  # in half precision the powers would be too small to compute with


def bounded(value: Tensor, power: float = _VALUE) -> Tensor:
    """Clamp a value that can grow without end, or an input, and its gradient to a range that operations can handle."""
    most, steepest = (max(_LEAST, torch.finfo(value.dtype).max ** one) for one in (power, _GRADIENT))
    value = value.clamp(-most, most)
    if value.requires_grad:
        value.register_hook(lambda gradient: gradient.clamp(-steepest, steepest))
    return value


def widest(device: torch.device) -> torch.dtype:
    """Return the most precise numbers that a device has: Apple's have no doubles."""
    return torch.float32 if device.type == "mps" else torch.float64


def attend(queries: Tensor, keys: Tensor, values: Tensor, scale: float, context: StackContext) -> Tensor:
    """Compute softmax(queries · keysᵀ x scale) · values with torch's fused kernel."""
    visible = context.visible(queries.shape[2], queries.device)
    return F.scaled_dot_product_attention(queries, keys, values, visible, scale=scale)


def _real(value: Tensor, shape: Shape, axis: int, context: StackContext) -> Tensor:
    """Zero the values at padding along one axis, if that axis is tokens."""
    if shape[axis] != "n" or context.mask is None:
        return value
    mask = context.mask[:, None, :, None] if axis == 0 else context.mask[:, None, None, :]
    return value * mask.to(value.dtype)


def _softmax(values: list[Tensor], shapes: tuple[Shape, ...], context: StackContext) -> Tensor:
    value = values[0]
    if shapes[0][1] == "n" and context.mask is not None:
        # not minus infinity, of which a sentence of nothing but padding would make no numbers
        value = value.masked_fill(~context.mask[:, None, None, :], torch.finfo(value.dtype).min)
    return value.softmax(-1)


def _cosine(values: list[Tensor], shapes: tuple[Shape, ...], context: StackContext) -> Tensor:
    left, right = (_real(value, shape, 1, context) for value, shape in zip(values, shapes, strict=True))
    return F.normalize(left, dim=-1, eps=1e-6) @ F.normalize(right, dim=-1, eps=1e-6).transpose(-1, -2)


def _euclidean(values: list[Tensor], shapes: tuple[Shape, ...], context: StackContext) -> Tensor:
    # Doubles, because the squares of near vectors cancel: in single precision a distance of 0 would come out as noise.
    wide = [value.to(widest(value.device)) for value in values]
    left, right = (_real(value, shape, 1, context) for value, shape in zip(wide, shapes, strict=True))
    squares = left.square().sum(-1)[..., :, None] + right.square().sum(-1)[..., None, :]
    return (squares - 2 * left @ right.transpose(-1, -2)).clamp(min=_SMALLEST).sqrt().to(values[0].dtype)


APPLY: dict[str, Callable[[list[Tensor], tuple[Shape, ...], StackContext], Tensor]] = {
    "neg": lambda values, *_: -values[0],
    "transpose": lambda values, *_: values[0].transpose(-1, -2),
    "softmax": _softmax,
    "logsigmoid": lambda values, *_: F.logsigmoid(values[0]),
    "softsign": lambda values, *_: F.softsign(values[0]),
    "add": lambda values, *_: values[0] + values[1],
    "matmul": lambda values, shapes, context: values[0] @ _real(values[1], shapes[1], 0, context),
    "cosine": _cosine,
    "euclidean": _euclidean,
}


class OpGraphAttention(nn.Module):
    """Run one graph: project the input once for each letter, compute every distinct value once, project back.

    Inputs and gradients of up to a million never become NaN or infinite, forwards or backwards, whatever the graph:
    values far beyond those of a healthy training are clamped. With eager settings it runs every operation as written,
    without the fused kernel.
    """

    def __init__(self, operation: OpGraph, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        inner = operation.heads * operation.head_width
        self.heads, self.head_width = operation.heads, operation.head_width
        self.program = compiled(operation.term, fused=not settings.eager)
        self.inputs = nn.ModuleDict({letter: nn.Linear(width, inner) for letter in operation.inputs})
        self.output = nn.Linear(inner, output)

    def hook_attention_maps(self, keep: KeepMaps) -> list[RemovableHandle]:
        wanted = ("Q", "K", "V")
        if any(letter not in self.inputs for letter in wanted):
            return []
        found: dict[str, Tensor] = {}

        def hook(letter: str) -> RemovableHandle:
            def note(_: nn.Module, __: Any, output: Tensor) -> None:
                found[letter] = output
                if len(found) == len(wanted):
                    keep(*(found.pop(one) for one in wanted))

            return self.inputs[letter].register_forward_hook(note)

        return [hook(letter) for letter in wanted]

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        guarded = self.program.grows
        letters = (project(x) for project in self.inputs.values())
        values = [split_heads(bounded(letter, _INPUT) if guarded else letter, self.heads) for letter in letters]
        for step in self.program.steps:
            operands = [values[place] for place in step.operands]
            if step.operation == ATTEND:
                queries, keys, others = operands
                value = attend(queries, keys, others, self.head_width ** (-0.5 * step.scales), context)
            elif step.operation == "scale":
                value = operands[0] * self.head_width**-0.5
            else:
                value = APPLY[step.operation](operands, step.shapes, context)
            values.append(bounded(value) if guarded and step.operation in GROWING else value)
        return self.output(join_heads(values[self.program.result]))
