"""Random legal designs of every family, drawn from an explicit generator."""

from dataclasses import replace

from numpy.random import Generator
from tests.arch.random_ops import ACTIVATIONS, WIDTHS, chance, pick, random_branch_operation, random_cross, random_mixer

from formwright.arch.card import Card
from formwright.arch.check import has_relative, operations
from formwright.arch.layers import (
    Block,
    Branch,
    Cell,
    Embedding,
    FrameEmbedding,
    Junction,
    Layer,
    PatchEmbedding,
    Positions,
    Stack,
    TokenEmbedding,
)
from formwright.arch.ops import Attention, BranchOperation, Identity, LightweightConvolution

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
    relative = any(has_relative(operation) for layer in layers for _, operation in operations(layer))
    options: tuple[Positions, ...] = ("learned", "sinusoidal", "relative" if relative else "none")
    embedding = _random_embedding(rng, kind, widths[0], pick(rng, options))
    return Stack(embedding, layers, causal=causal, final_norm=chance(rng, 0.3))


def _on_a_grid(layer: Layer) -> Layer:
    """Give the attention of a block relative positions of two axes, if it has any."""
    if isinstance(layer, Block) and isinstance(layer.mixer, Attention) and layer.mixer.relative is not None:
        return replace(layer, mixer=replace(layer.mixer, relative=replace(layer.mixer.relative, axes=2, rows=6)))
    return layer


def random_layer(
    rng: Generator, width: int, *, causal: bool = False, memory: Stack | None = None, below: int | None = None
) -> Layer:
    """Draw a cell, an identity layer or, mostly, a block; identity keeps the width `below` it."""
    if chance(rng, 0.3):
        return random_cell(rng, width, memory)
    if chance(rng, 0.1):
        return Block(below or width, Identity())
    identity = chance(rng, 0.1)
    return Block(
        width,
        Identity() if identity else random_mixer(rng, width, causal=causal),
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
        return Branch(state, Identity(), entry)
    operation = random_branch_operation(rng, memory)
    width = entry if _keeps_width(operation) else pick(rng, WIDTHS)
    return Branch(state, operation, width, chance(rng, 0.3), pick(rng, (None, *ACTIVATIONS)))


def _keeps_width(operation: BranchOperation) -> bool:
    ungated = isinstance(operation, LightweightConvolution) and not operation.gated
    return ungated or isinstance(operation, Identity)


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
