"""Write a design differently without changing what it computes."""

from collections.abc import Sequence
from dataclasses import replace

from numpy.random import Generator
from tests.arch.random_ops import chance, pick

from formwright.arch.card import Card
from formwright.arch.check import operations
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.ops import CrossAttention, Identity, OpGraph
from formwright.arch.primitives import COMMUTATIVE, INPUTS, Term


def rewritten(card: Card, rng: Generator) -> Card:
    """Draw another card of the same graph: order, names and the division into layers are free."""
    encoder = card.encoder and rewritten_stack(card.encoder, rng, _layers_read(card))
    return replace(card, encoder=encoder, decoder=card.decoder and rewritten_stack(card.decoder, rng, 0))


def rewritten_stack(stack: Stack, rng: Generator, kept: int) -> Stack:
    """Rewrite the layers of a stack; the last `kept`, which a decoder reads one by one, stay as many as they are."""
    border = len(stack.layers) - kept
    below = [part for layer in stack.layers[:border] for part in split(rewritten_layer(layer, rng), rng)]
    above = [rewritten_layer(layer, rng) for layer in stack.layers[border:]]
    if chance(rng, 0.6):
        place = int(rng.integers(len(below) + 1))
        width = below[place - 1].output_width if place else stack.embedding.width
        below.insert(place, Block(width, Identity()))
    return replace(stack, layers=(*merged(below, rng), *above))


def rewritten_layer(layer: Layer, rng: Generator) -> Layer:
    """Reorder a cell, or rename the inputs of an op graph."""
    if isinstance(layer, Cell):
        return reordered(layer, rng)
    if isinstance(layer.mixer, OpGraph):
        letters = dict(zip(INPUTS, map(str, rng.permutation(INPUTS)), strict=True))
        return replace(layer, mixer=replace(layer.mixer, term=renamed(layer.mixer.term, letters)))
    return layer


def renamed(term: Term, letters: dict[str, str]) -> Term:
    """Rename the inputs of a term, and swap operands where their order does not matter."""
    if isinstance(term, str):
        return letters[term]
    operands = [renamed(operand, letters) for operand in term[1:]]
    return (term[0], *(reversed(operands) if term[0] in COMMUTATIVE else operands))


def reordered(cell: Cell, rng: Generator) -> Cell:
    """Draw another order in which the junctions can be computed, and swap branches where that is no change."""
    new_state = {0: 0}
    junctions: list[Junction] = []
    while len(junctions) < len(cell.junctions):
        waiting = [state for state in range(1, len(cell.junctions) + 1) if state not in new_state]
        ready = [
            state for state in waiting if all(side.input in new_state for side in sides(cell.junctions[state - 1]))
        ]
        chosen = pick(rng, ready[:-1] if ready[1:] and ready[-1] == waiting[-1] else ready)
        junctions.append(_swapped(_reading(cell.junctions[chosen - 1], new_state), rng))
        new_state[chosen] = len(junctions)
    return replace(cell, junctions=tuple(junctions))


def sides(junction: Junction) -> list[Branch]:
    """List the branches of a junction."""
    return [branch for branch in (junction.left, junction.right) if branch is not None]


def split(layer: Layer, rng: Generator) -> list[Layer]:
    """Divide a cell, half of the time, behind a junction that all later ones build on."""
    if isinstance(layer, Block) or chance(rng, 0.5):
        return [layer]
    for cut in range(1, len(layer.junctions)):
        above = layer.junctions[cut:]
        if all(side.input >= cut for junction in above for side in sides(junction)):
            new_state = {state: state - cut for state in range(cut, len(layer.junctions) + 1)}
            upper = tuple(_reading(junction, new_state) for junction in above)
            return [replace(layer, junctions=layer.junctions[:cut]), Cell(layer.state_widths[cut], upper)]
    return [layer]


def merged(layers: Sequence[Layer], rng: Generator) -> list[Layer]:
    """Join, half of the time, a cell with the cell below it where no projection stands between them."""
    done: list[Layer] = []
    for layer in layers:
        below = done[-1] if done else None
        if (
            isinstance(below, Cell)
            and isinstance(layer, Cell)
            and below.output_width == layer.width
            and chance(rng, 0.5)
        ):
            done[-1] = _joined(below, layer)
        else:
            done.append(layer)
    return done


def _joined(below: Cell, above: Cell) -> Cell:
    count = len(below.junctions)
    new_state = {state: state + count for state in range(len(above.junctions) + 1)}
    return replace(
        below, junctions=below.junctions + tuple(_reading(junction, new_state) for junction in above.junctions)
    )


def _reading(junction: Junction, new_state: dict[int, int]) -> Junction:
    left, *right = (replace(side, input=new_state[side.input]) for side in sides(junction))
    return replace(junction, left=left, right=right[0] if right else None)


def _swapped(junction: Junction, rng: Generator) -> Junction:
    if junction.right is None or junction.combine == "concatenate" or chance(rng, 0.5):
        return junction
    return replace(junction, left=junction.right, right=junction.left)


def _layers_read(card: Card) -> int:
    layers = card.decoder.layers if card.decoder else ()
    found = [operation for layer in layers for _, operation in operations(layer)]
    return max((operation.layers for operation in found if isinstance(operation, CrossAttention)), default=0)
