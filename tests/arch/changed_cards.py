"""Cards changed on purpose: in one place, in their writing alone, or so that their JSON breaks."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from numpy.random import Generator
from tests.arch.random_cards import ACTIVATIONS, chance, pick

from formwright.arch.card import Card
from formwright.arch.layers import Block, Cell, Junction, Layer, Stack
from formwright.arch.ops import CrossAttention, Identity, OpGraph
from formwright.arch.primitives import BINARY, COMMUTATIVE, INPUTS, UNARY, Term
from formwright.core.errors import IllegalDesign

Change = Callable[[Any, Generator], Any]


def near_miss(card: Card, rng: Generator) -> Card:
    """Draw a legal design that differs from `card` in one place of its JSON; its graph may be the same all the same."""
    while True:
        data = card.to_json()
        sites = list(_sites(data))
        # what only rewires a design keeps all labels, so it is the hardest to tell apart and is tried most
        rewiring = [site for site in sites if site[2] in _REWIRING]
        holder, name, change = pick(rng, rewiring if rewiring and chance(rng, 0.7) else sites)
        holder[name] = change(holder[name], rng)
        try:
            changed = Card.from_json(data)
        except IllegalDesign:
            continue
        if changed != card:
            return changed


def _sites(data: Any) -> Iterator[tuple[Any, Any, Change]]:
    """List the holder, the name and the change of every place that can be changed."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, item in items:
        if name in _CHANGES and not (name == "layers" and isinstance(item, list)):
            yield data, name, _CHANGES[name]
        elif type(item) is int and name != "schema":
            yield data, name, _other_number
        elif isinstance(item, list) and len(item) > 1:
            yield data, name, _other_order
        elif isinstance(item, dict) and "left" in item and "right" in item:
            yield data, name, _other_sides
        if name != "term":
            yield from _sites(item)


def _other_number(value: int, rng: Generator) -> int:
    return pick(rng, (value + 1, value - 1, value * 2, value // 2))


def _other_order(items: list[Any], rng: Generator) -> list[Any]:
    place = int(rng.integers(len(items) - 1))
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def _other_sides(junction: dict[str, Any], rng: Generator) -> dict[str, Any]:
    """Swap the two branches, or only the states that they read."""
    left, right = junction["left"], junction["right"]
    if pick(rng, (True, False)):
        left, right = {**right, "input": left["input"]}, {**left, "input": right["input"]}
    return {**junction, "left": right, "right": left}


def _other_state(state: int, rng: Generator) -> int:
    return int(rng.integers(state + 2))


def _other_word(*words: Any) -> Change:
    return lambda _, rng: pick(rng, words)


def _other_term(term: Any, rng: Generator) -> Any:
    """Swap the operands, or exchange the operation, somewhere in an op graph."""
    if isinstance(term, str):
        return pick(rng, "QKVP")
    place = int(rng.integers(len(term)))
    if place:
        return [*term[:place], _other_term(term[place], rng), *term[place + 1 :]]
    if len(term) == 2:
        return [pick(rng, list(UNARY)), term[1]]
    return [term[0], term[2], term[1]] if pick(rng, (True, False)) else [pick(rng, list(BINARY)), *term[1:]]


_CHANGES: dict[Any, Change] = {
    "activation": _other_word(*ACTIVATIONS),
    "combine": _other_word("add", "concatenate", "multiply"),
    "norm": _other_word("pre", "post", True, False),
    "positions": _other_word("learned", "sinusoidal", "relative", "none"),
    "score": _other_word("sdp", "wma"),
    "transform": _other_word("dft", "dct"),
    "input": _other_state,
    "layers": lambda value, rng: pick(rng, (1, 2, 3)),
    "term": _other_term,
    "causal": lambda value, rng: not value,
    "final_norm": lambda value, rng: not value,
}
_REWIRING: tuple[Change, ...] = (_other_order, _other_sides, _other_state, _other_term)


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
            state for state in waiting if all(side.input in new_state for side in cell.junctions[state - 1].branches)
        ]
        chosen = pick(rng, ready[:-1] if ready[1:] and ready[-1] == waiting[-1] else ready)
        junctions.append(_swapped(_reading(cell.junctions[chosen - 1], new_state), rng))
        new_state[chosen] = len(junctions)
    return replace(cell, junctions=tuple(junctions))


def split(layer: Layer, rng: Generator) -> list[Layer]:
    """Divide a cell, half of the time, behind a junction that all later ones build on."""
    if isinstance(layer, Block) or chance(rng, 0.5):
        return [layer]
    for cut in range(1, len(layer.junctions)):
        above = layer.junctions[cut:]
        if all(side.input >= cut for junction in above for side in junction.branches):
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
    left, *right = (replace(side, input=new_state[side.input]) for side in junction.branches)
    return replace(junction, left=left, right=right[0] if right else None)


def _swapped(junction: Junction, rng: Generator) -> Junction:
    if junction.right is None or junction.combine == "concatenate" or chance(rng, 0.5):
        return junction
    return replace(junction, left=junction.right, right=junction.left)


def _layers_read(card: Card) -> int:
    layers = card.decoder.layers if card.decoder else ()
    found = [operation for layer in layers for _, operation in layer.operations]
    return max((operation.layers for operation in found if isinstance(operation, CrossAttention)), default=0)


SMALL = (
    '{"schema":1,"encoder":{"embedding":{"type":"tokens","vocabulary":9,"width":8},'
    '"layers":[{"type":"block","width":8,"mixer":{"type":"attention","heads":2,"head_width":4}}]}}'
)
STRANGE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 1.0, 1e300, math.inf, math.nan, 10**13, 10**4000, -(10**4000), "", "Q", "attention",
    "\ud800", "\x1b[31m", [], {}, [[]], [None], {"type": []}, {"type": {}}, {"type": None}, {"": 0}, {"schema": 1},
)  # fmt: skip


def places(data: Any) -> list[tuple[Any, Any]]:
    """List every (holder, key) of JSON data."""
    keys: list[Any] = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [(data, key) for key in keys] + [place for key in keys for place in places(data[key])]


def mutate(data: Any, rng: Generator) -> None:
    """Drop, add, exchange or change something somewhere."""
    holder, key = pick(rng, places(data))
    other_holder, other_key = pick(rng, places(data))
    kind = pick(rng, ("drop", "add", "strange", "exchange", "number"))
    if kind == "drop":
        del holder[key]
    elif kind == "add":
        holder[key] = {"more": holder[key]} if isinstance(holder[key], list) else [holder[key], holder[key]]
    elif kind == "strange":
        holder[key] = pick(rng, STRANGE)
    elif kind == "exchange":
        holder[key] = json.loads(json.dumps(other_holder[other_key]))
    elif isinstance(holder[key], int):
        holder[key] += int(rng.integers(-3, 4))
