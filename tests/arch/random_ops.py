"""Random legal operations, and the two draws that all random designs are made of."""

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

from formwright.arch.layers import Activation, Stack
from formwright.arch.ops import (
    Attention,
    BranchOperation,
    Convolution,
    CrossAttention,
    DynamicConvolution,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    Mixer,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.arch.primitives import BINARY, INPUTS, UNARY, Shape, Term

T = TypeVar("T")
WIDTHS = (16, 32, 64)
ACTIVATIONS: tuple[Activation, ...] = ("gelu", "relu", "swish", "leaky-relu", "squared-relu")


def pick(rng: Generator, options: Sequence[T]) -> T:
    """Draw one of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Generator, probability: float) -> bool:
    """Be true with the given probability."""
    return bool(rng.random() < probability)


def random_mixer(rng: Generator, width: int, *, causal: bool) -> Mixer:
    """Draw a mixer; a causal one does not see the whole sentence."""
    relative = RelativeAttention(2, width // 2, 9) if chance(rng, 0.5) else None
    mixers: list[Mixer] = [
        random_attention(rng),
        DynamicConvolution(
            pick(rng, (3, 5)),
            pick(rng, (1, 2)),
            pick(rng, (4, 8)),
            Relative(pick(rng, (5, 9))) if chance(rng, 0.4) else None,
        ),
        SeparableConvolution(pick(rng, (3, 5, 7)), pick(rng, (1, 2))),
        random_lightweight(rng),
    ]
    if not causal:
        mixers.append(Transform(pick(rng, ("dft", "dct")), relative))
        mixers += [OpGraph(pick(rng, (1, 2)), 8, random_attention_term(rng)) for _ in range(2)]
    return pick(rng, mixers)


def random_branch_operation(rng: Generator, memory: Stack | None) -> BranchOperation:
    """Draw an operation for a branch; with a `memory` it may attend to it."""
    options: list[BranchOperation] = [
        random_attention(rng),
        Convolution(pick(rng, (1, 3))),
        SeparableConvolution(pick(rng, (3, 5, 7)), pick(rng, (1, 2))),
        random_lightweight(rng),
        GatedLinearUnit(),
        Identity(),
    ]
    if memory is not None:
        options += [random_cross(rng, memory), random_cross(rng, memory)]
    return pick(rng, options)


def random_attention(rng: Generator) -> Attention:
    """Draw a self-attention."""
    heads, width = pick(rng, (1, 2, 3)), pick(rng, (4, 8))
    return Attention(heads, width, pick(rng, ("sdp", "wma")), random_relative(rng), chance(rng, 0.8))


def random_lightweight(rng: Generator) -> LightweightConvolution:
    """Draw a lightweight convolution whose heads divide every width that is drawn here."""
    return LightweightConvolution(pick(rng, (3, 5)), pick(rng, (1, 2, 4)), chance(rng, 0.5))


def random_cross(rng: Generator, memory: Stack) -> CrossAttention:
    """Draw an attention to as many encoder layers, at most three, as are equally wide."""
    widths = [layer.output_width for layer in reversed(memory.layers)]
    depths = [depth for depth in (1, 2, 3) if depth <= len(widths) and len(set(widths[:depth])) == 1]
    return CrossAttention(pick(rng, (1, 2)), pick(rng, (4, 8)), pick(rng, depths), chance(rng, 0.8))


def random_attention_term(rng: Generator) -> Term:
    """Draw a legal op graph that is not a bare input."""
    while isinstance(term := random_term(rng, ("n", "d"), 4), str):
        pass
    return term


def random_term(rng: Generator, shape: Shape, depth: int) -> Term:
    """Draw a term of the given shape; operations stop to be drawn freely below `depth`."""
    rows, columns = shape
    if depth <= 0 or chance(rng, 0.15):
        return _shortest_term(rng, shape)
    operation = pick(rng, [*UNARY, *BINARY])
    if operation == "transpose":
        return (operation, random_term(rng, (columns, rows), depth - 1))
    if operation in UNARY:
        return (operation, random_term(rng, shape, depth - 1))
    if operation == "add":
        return (operation, random_term(rng, shape, depth - 1), random_term(rng, shape, depth - 1))
    inner = pick(rng, ("n", "d"))
    right = (inner, columns) if operation == "matmul" else (columns, inner)
    return (operation, random_term(rng, (rows, inner), depth - 1), random_term(rng, right, depth - 1))


def _shortest_term(rng: Generator, shape: Shape) -> Term:
    left, right = pick(rng, INPUTS), pick(rng, INPUTS)
    if shape == ("n", "d"):
        return left
    if shape == ("d", "n"):
        return ("transpose", left)
    turned, straight = ("transpose", right), left
    return ("matmul", straight, turned) if shape == ("n", "n") else ("matmul", turned, straight)


def random_relative(rng: Generator) -> Relative | None:
    """Draw relative positions, or none."""
    return Relative(pick(rng, (5, 9)), values=chance(rng, 0.5)) if chance(rng, 0.4) else None
