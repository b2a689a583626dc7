"""Random legal designs of every family and their operations, drawn from an explicit generator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from numpy.random import Generator

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, FrameEmbedding, PatchEmbedding, Positions, TokenEmbedding
from formwright.arch.layers import Activation, Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.primitives import BINARY, INPUTS, UNARY, Shape, Term

T = TypeVar("T")
# the operations that random cards are made of; one that came later has the contract kit to test it
NAMED = {one for one in vars(ops).values() if isinstance(one, type) and issubclass(one, ops.Operation)} - {
    ops.Operation
}
WIDTHS = (16, 32, 64)
ACTIVATIONS: tuple[Activation, ...] = ("gelu", "relu", "swish", "leaky-relu", "squared-relu")


def pick(rng: Generator, options: Sequence[T]) -> T:
    """Draw one of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Generator, probability: float) -> bool:
    """Be true with the given probability."""
    return bool(rng.random() < probability)


def random_mixer(rng: Generator, width: int, *, causal: bool) -> ops.Mixer:
    """Draw a mixer; a causal one does not see the whole sentence."""
    relative = ops.RelativeAttention(2, width // 2, 9) if chance(rng, 0.5) else None
    mixers: list[ops.Mixer] = [
        random_attention(rng),
        ops.DynamicConvolution(
            pick(rng, (3, 5)),
            pick(rng, (1, 2)),
            pick(rng, (4, 8)),
            ops.Relative(pick(rng, (5, 9))) if chance(rng, 0.4) else None,
        ),
        ops.SeparableConvolution(pick(rng, (3, 5, 7)), pick(rng, (1, 2))),
        random_lightweight(rng),
    ]
    if not causal:
        mixers.append(ops.Transform(pick(rng, ("dft", "dct")), relative))
        mixers += [ops.OpGraph(pick(rng, (1, 2)), 8, random_attention_term(rng)) for _ in range(2)]
    return pick(rng, mixers)


def random_branch_operation(rng: Generator, memory: Stack | None) -> ops.BranchOperation:
    """Draw an operation for a branch; with a `memory` it may attend to it."""
    options: list[ops.BranchOperation] = [
        random_attention(rng),
        ops.Convolution(pick(rng, (1, 3))),
        ops.SeparableConvolution(pick(rng, (3, 5, 7)), pick(rng, (1, 2))),
        random_lightweight(rng),
        ops.GatedLinearUnit(),
        ops.Identity(),
    ]
    if memory is not None:
        options += [random_cross(rng, memory), random_cross(rng, memory)]
    return pick(rng, options)


def random_attention(rng: Generator) -> ops.Attention:
    """Draw a self-attention."""
    heads, width = pick(rng, (1, 2, 3)), pick(rng, (4, 8))
    return ops.Attention(heads, width, pick(rng, ("sdp", "wma")), random_relative(rng), chance(rng, 0.8))


def random_lightweight(rng: Generator) -> ops.LightweightConvolution:
    """Draw a lightweight convolution whose heads divide every width that is drawn here."""
    return ops.LightweightConvolution(pick(rng, (3, 5)), pick(rng, (1, 2, 4)), chance(rng, 0.5))


def random_cross(rng: Generator, memory: Stack) -> ops.CrossAttention:
    """Draw an attention to as many encoder layers, at most three, as are equally wide."""
    widths = memory.output_widths[::-1]
    depths = [depth for depth in (1, 2, 3) if depth <= len(widths) and len(set(widths[:depth])) == 1]
    return ops.CrossAttention(pick(rng, (1, 2)), pick(rng, (4, 8)), pick(rng, depths), chance(rng, 0.8))


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


def random_relative(rng: Generator) -> ops.Relative | None:
    """Draw relative positions, or none."""
    return ops.Relative(pick(rng, (5, 9)), values=chance(rng, 0.5)) if chance(rng, 0.4) else None


FAMILIES = ("encoder", "decoder", "encoder-decoder", "vision", "frames")


def random_card(rng: Generator, family: str | None = None, most_layers: int = 4) -> Card:
    """Draw a legal design; `family` is one of `FAMILIES`, any of them when not given."""
    family = family or pick(rng, FAMILIES)
    idle = pick(rng, (0, 0, 0, 7))
    if family == "encoder":
        encoder = random_stack(rng, most_layers, "tokens", causal=chance(rng, 0.2))
        return Card(encoder, pooler=chance(rng, 0.5), classes=pick(rng, (0, 2, 3)))
    if family == "decoder":
        return Card(decoder=random_stack(rng, most_layers, "tokens", causal=True), idle=idle)
    if family == "encoder-decoder":
        encoder = random_stack(rng, most_layers, pick(rng, ("tokens", "tokens", "frames")))
        decoder = random_stack(rng, most_layers, "tokens", causal=True, memory=encoder)
        return Card(encoder, decoder, share_embedding=_same_tables(encoder, decoder) and chance(rng, 0.7), idle=idle)
    kind = "patches" if family == "vision" else "frames"
    return Card(random_stack(rng, most_layers, kind), classes=pick(rng, (0, 10)), idle=idle)


def random_stack(
    rng: Generator, most_layers: int, kind: str, *, causal: bool = False, memory: Stack | None = None
) -> Stack:
    """Draw an embedding (`tokens`, `patches` or `frames`) and some layers, often of unequal widths."""
    widths = [pick(rng, WIDTHS)] * int(rng.integers(1, most_layers + 1))
    if chance(rng, 0.4):
        widths = [pick(rng, WIDTHS) for _ in widths]
    layers: tuple[Layer, ...] = ()
    for width in widths:
        below = layers[-1].output_width if layers else widths[0]
        layers = (*layers, random_layer(rng, width, causal=causal, memory=memory, below=below))
    if kind == "patches" and chance(rng, 0.5):
        layers = tuple(_on_a_grid(layer) for layer in layers)
    relative = any((operation.relative_axes > 0) for layer in layers for _, operation in layer.operations)
    options: tuple[Positions, ...] = ("learned", "sinusoidal", "relative" if relative else "none")
    embedding = _random_embedding(rng, kind, widths[0], pick(rng, options))
    stack = Stack(embedding, layers, causal=causal, final_norm=chance(rng, 0.3))
    return replace(stack, joints="always", out=pick(rng, (None, *WIDTHS))) if chance(rng, 0.1) else stack


def _on_a_grid(layer: Layer) -> Layer:
    """Give the attention of a block relative positions of two axes, if it has any."""
    if isinstance(layer, Block) and isinstance(layer.mixer, ops.Attention) and layer.mixer.relative is not None:
        return replace(layer, mixer=replace(layer.mixer, relative=replace(layer.mixer.relative, axes=2, rows=6)))
    return layer


def random_layer(
    rng: Generator, width: int, *, causal: bool = False, memory: Stack | None = None, below: int | None = None
) -> Layer:
    """Draw a cell, an identity layer or, mostly, a block; identity keeps the width `below` it."""
    if chance(rng, 0.3):
        return random_cell(rng, width, memory)
    if chance(rng, 0.1):
        return Block(below or width, ops.Identity())
    identity = chance(rng, 0.1)
    return Block(
        width,
        ops.Identity() if identity else random_mixer(rng, width, causal=causal),
        tuple(pick(rng, WIDTHS) for _ in range(int(rng.integers(identity, 4)))),
        pick(rng, ACTIVATIONS),
        pick(rng, ("pre", "post")),
        random_cross(rng, memory) if memory is not None and chance(rng, 0.8) else None,
    )


def random_cell(rng: Generator, width: int, memory: Stack | None = None) -> Cell:
    """Draw one to five junctions, each of which a later one reads."""
    inputs = _random_wiring(rng, int(rng.integers(1, 6)))
    widths, junctions = [width], []
    for first, second in inputs:
        left = _random_branch(rng, first, widths[first], memory)
        right = None if second is None else _random_branch(rng, second, widths[second], memory)
        junctions.append(Junction(left, right, pick(rng, ("add", "add", "concatenate", "multiply"))))
        widths.append(junctions[-1].width)
    return Cell(width, tuple(junctions))


def _random_wiring(rng: Generator, count: int) -> list[tuple[int, int | None]]:
    """Draw which states each junction reads, until none of them is left unread."""
    while True:
        wiring = [
            (int(rng.integers(index + 1)), int(rng.integers(index + 1)) if chance(rng, 0.7) else None)
            for index in range(count)
        ]
        read = {state for pair in wiring for state in pair}
        if read >= set(range(1, count)):
            return wiring


def _random_branch(rng: Generator, state: int, entry: int, memory: Stack | None) -> Branch:
    if chance(rng, 0.3):
        return Branch(state, ops.Identity(), entry)
    operation = random_branch_operation(rng, memory)
    width = entry if _keeps_width(operation) else pick(rng, WIDTHS)
    return Branch(state, operation, width, chance(rng, 0.3), pick(rng, (None, *ACTIVATIONS)))


def _keeps_width(operation: ops.BranchOperation) -> bool:
    ungated = isinstance(operation, ops.LightweightConvolution) and not operation.gated
    return ungated or isinstance(operation, ops.Identity)


def _random_embedding(rng: Generator, kind: str, width: int, positions: Positions) -> Embedding:
    if kind == "patches":
        return PatchEmbedding(16, pick(rng, (4, 8)), width, pick(rng, (1, 3)), pick(rng, (0, 1, 2)), positions)
    if kind == "frames":
        return FrameEmbedding(pick(rng, (40, 80)), width, positions, pick(rng, (128, 512)))
    factorised = pick(rng, (8, 16)) if chance(rng, 0.4) else None
    types, norm = pick(rng, (0, 2)), chance(rng, 0.7)
    return TokenEmbedding(pick(rng, (99, 100)), width, factorised, positions, pick(rng, (64, 512)), types, norm)


def _same_tables(encoder: Stack, decoder: Stack) -> bool:
    first, second = encoder.embedding, decoder.embedding
    if not (isinstance(first, TokenEmbedding) and isinstance(second, TokenEmbedding)):
        return False
    return (first.vocabulary, first.table_width) == (second.vocabulary, second.table_width)
