"""The Evolved Transformer's search space (So et al., 2019): an encoder cell and a decoder cell of two-branch junctions.

A branch reads any earlier state, may normalise it, applies one operation and may activate; the right branch may be
dead. Output widths are chosen here as one half, one, two and four times the model's width, the values that the
published cells use. Genes that cannot matter do not exist: identity and lightweight convolution keep their width, and
a junction whose right branch is dead has no combiner. Junctions that nothing reads are left out of the card.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import (
    Attention,
    BranchOperation,
    Convolution,
    CrossAttention,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    SeparableConvolution,
)
from formwright.space import Case, Choice, Combinator, Fields, Record, Space, Switch
from formwright.space.zoo.translation import VOCABULARY, model

_NONE = "none"
_SAME = Case("identity", Fields.of())
_DEAD = Case("dead", Fields.of())


@dataclass(frozen=True)
class CellMenu:
    """What cells may be made of."""

    width: int
    encoder_junctions: int
    decoder_junctions: int
    cells: tuple[int, ...]
    scales: tuple[float, ...]
    heads: tuple[int, ...]
    convolutions: tuple[int, ...]
    separable: tuple[int, ...]
    lightweight: tuple[int, ...]
    reductions: tuple[int, ...]
    vocabulary: int


PUBLISHED = CellMenu(
    width=512,
    encoder_junctions=6,
    decoder_junctions=8,
    cells=(1, 2, 3, 4, 5, 6),
    scales=(0.5, 1, 2, 4),
    heads=(4, 8, 16),
    convolutions=(1, 3),
    separable=(3, 5, 7, 9, 11),
    lightweight=(3, 5, 7, 15),
    reductions=(1, 4, 16),
    vocabulary=VOCABULARY,
)
SMALL = replace(
    PUBLISHED,
    width=64,
    encoder_junctions=3,
    decoder_junctions=4,
    cells=(1, 2),
    scales=(0.5, 1, 2),
    heads=(2, 4),
    separable=(3, 5, 7),
    lightweight=(3, 7),
    reductions=(4, 16),
    vocabulary=1_000,
)


def evolved_transformer(name: str, menu: CellMenu) -> Space:
    root = Record.of(
        encoder=_cell_part(menu, menu.encoder_junctions, decoder=False),
        decoder=_cell_part(menu, menu.decoder_junctions, decoder=True),
    )
    about = "encoder and decoder cells of two-branch junctions (Evolved Transformer, So et al. 2019)"
    return Space(name, root, lambda design: _card(design, menu), about)


def transformer(menu: CellMenu) -> Fields:
    """Return the plain Transformer as a design: the published search begins with it.

    Each cell holds as many layers of three junctions (in the decoder four) as it has room for; junctions that are left
    over pass their input on. Feed-forward parts are as wide as the menu allows, and there are six layers, or as many as
    it allows.
    """
    return Fields.of(
        encoder=_plain_half(menu, menu.encoder_junctions, ("attention",)),
        decoder=_plain_half(menu, menu.decoder_junctions, ("attention", "attend")),
    )


def _plain_half(menu: CellMenu, junctions: int, attentions: Sequence[str]) -> Fields:
    layers = junctions // (len(attentions) + 2)
    genes: list[Fields] = []
    for _ in range(layers):
        genes += _plain_layer(menu, len(genes), attentions)
    genes += [Fields.of(left=_plain(state, _SAME), right=_DEAD) for state in range(len(genes), junctions)]
    cells = min(menu.cells, key=lambda number: abs(6 - number * layers))
    return Fields.of(cells=cells, **{f"junction_{index}": one for index, one in enumerate(genes, start=1)})


def _plain_layer(menu: CellMenu, state: int, attentions: Sequence[str]) -> list[Fields]:
    """Return the junctions of a layer that reads a state: its attentions, then a feed-forward part."""
    heads = menu.heads[len(menu.heads) // 2]
    genes = [
        _residual(state + place, state + place, Case(kind, Fields.of(heads=heads, scale=1)), norm=True)
        for place, kind in enumerate(attentions)
    ]
    state += len(genes)
    wide, narrow = (Case("convolution", Fields.of(kernel=1, scale=scale)) for scale in (max(menu.scales), 1))
    inner = Fields.of(left=_plain(state, wide, norm=True, activation="relu"), right=_DEAD)
    return [*genes, inner, _residual(state + 1, state, narrow, norm=False)]


def _residual(state: int, kept: int, operation: Case, *, norm: bool) -> Fields:
    right = Fields.of(branch=_plain(kept, _SAME), combine="add")
    return Fields.of(left=_plain(state, operation, norm=norm), right=Case("alive", right))


def _plain(state: int, operation: Case, *, norm: bool = False, activation: str = _NONE) -> Fields:
    return Fields.of(input=state, norm=norm, operation=operation, activation=activation)


def _cell_part(menu: CellMenu, junctions: int, *, decoder: bool) -> Record:
    parts: dict[str, Combinator[Any]] = {"cells": Choice(menu.cells)}
    for index in range(1, junctions + 1):
        branch = _branch_part(menu, index, decoder=decoder)
        alive = Record.of(branch=branch, combine=Choice(("add", "concatenate", "multiply")))
        parts[f"junction_{index}"] = Record.of(left=branch, right=Switch.of(alive=alive, dead=Record.of()))
    return Record(tuple(parts.items()))


def _branch_part(menu: CellMenu, states: int, *, decoder: bool) -> Record:
    scale = Choice(menu.scales)
    operations: dict[str, Combinator[Any]] = {
        "identity": Record.of(),
        "convolution": Record.of(kernel=Choice(menu.convolutions), scale=scale),
        "separable": Record.of(kernel=Choice(menu.separable), scale=scale),
        "lightweight": Record.of(kernel=Choice(menu.lightweight), reduction=Choice(menu.reductions)),
        "attention": Record.of(heads=Choice(menu.heads), scale=scale),
        "gated": Record.of(scale=scale),
    }
    if decoder:
        operations["attend"] = Record.of(heads=Choice(menu.heads), scale=scale)
    return Record.of(
        input=Choice(tuple(range(states))),
        norm=Choice((True, False)),
        operation=Switch(tuple(operations.items())),
        activation=Choice((_NONE, "swish", "relu", "leaky-relu")),
    )


def _card(design: Fields, menu: CellMenu) -> Card:
    encoder, decoder = ((_cell(half, menu),) * half.cells for half in (design.encoder, design.decoder))
    return model(menu.width, encoder, decoder, menu.vocabulary)


def _cell(half: Fields, menu: CellMenu) -> Cell:
    widths, junctions = [menu.width], []
    for name, choice in half.items():
        if name != "cells":
            junctions.append(_junction(choice, widths, menu))
            widths.append(junctions[-1].width)
    return Cell(menu.width, _reached(junctions))


def _junction(choice: Fields, widths: Sequence[int], menu: CellMenu) -> Junction:
    left = _branch(choice.left, widths, menu)
    if choice.right.tag == "dead":
        return Junction(left)
    return Junction(left, _branch(choice.right.value.branch, widths, menu), choice.right.value.combine)


def _branch(choice: Fields, widths: Sequence[int], menu: CellMenu) -> Branch:
    entry = widths[choice.input]
    operation = _operation(choice.operation, entry, menu.width)
    scale = choice.operation.value.get("scale")
    width = entry if scale is None else int(menu.width * scale)
    return Branch(
        choice.input, operation, width, choice.norm, None if choice.activation == _NONE else choice.activation
    )


def _operation(choice: Case, entry: int, width: int) -> BranchOperation:
    genes = choice.value
    match choice.tag:
        case "identity":
            return Identity()
        case "convolution":
            return Convolution(genes.kernel)
        case "separable":
            return SeparableConvolution(genes.kernel, stacked=1)
        case "lightweight":
            return LightweightConvolution(genes.kernel, entry // genes.reduction, gated=False)
        case "attention":
            return Attention(genes.heads, width // genes.heads, bias=False)
        case "gated":
            return GatedLinearUnit()
        case _:
            return CrossAttention(genes.heads, width // genes.heads, bias=False)


def _reached(junctions: Sequence[Junction]) -> tuple[Junction, ...]:
    """Drop the junctions that the last one does not depend on, and renumber the states."""
    needed = {len(junctions)}
    for state in range(len(junctions), 0, -1):
        if state in needed:
            needed |= {branch.input for branch in junctions[state - 1].branches}
    number = {state: position for position, state in enumerate(sorted(needed | {0}))}
    kept = [junction for state, junction in enumerate(junctions, start=1) if state in needed]
    return tuple(_renumbered(junction, number) for junction in kept)


def _renumbered(junction: Junction, number: dict[int, int]) -> Junction:
    left, right = (branch and replace(branch, input=number[branch.input]) for branch in (junction.left, junction.right))
    assert left is not None
    return Junction(left, right, junction.combine)


SPACE = evolved_transformer("evolved-transformer", PUBLISHED)
NANO = evolved_transformer("evolved-transformer-nano", SMALL)
