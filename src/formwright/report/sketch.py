"""Designs as small data from which the page draws them: every layer and every phrase is written once."""

from dataclasses import dataclass, field
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block, Cell, Layer, Stack
from formwright.arch.ops import Attention, Identity, Operation, OpGraph
from formwright.report.palette import Swatch, swatch
from formwright.report.words import (
    describe,
    describe_branch,
    describe_embedding,
    describe_feed_forward,
    describe_head,
    describe_layer,
    headline,
    heads_of,
)
from formwright.report.wrap import shortened

_LETTERS = 160  # of one phrase; an op graph may be a formula without end


@dataclass
class Sketches:
    """Collect the sketches of many cards, which share `layers`, `phrases` and `swatches`.

    A card is `[headline, head, stacks]`, a stack `[first line, second line, layers]`, a layer `[words, width, output
    width, bands, bars, lines]`: a band is a row of boxes `[swatch, heads]`, a bar a feed-forward width. Layers,
    swatches and all words are numbers of entries in the lists.
    """

    layers: list[Any] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    swatches: list[Swatch] = field(default_factory=list)
    _layers: dict[Layer, int] = field(default_factory=dict)
    _phrases: dict[str, int] = field(default_factory=dict)

    def add(self, card: Card) -> list[Any]:
        """Give the sketch of a card."""
        stacks = [self._stack(stack, card.share_embedding and stack is card.decoder) for stack in card.stacks]
        return [self._phrase(headline(card)), [self._phrase(words) for words in describe_head(card)], stacks]

    def _stack(self, stack: Stack, shared: bool) -> list[Any]:
        lines = describe_embedding(stack.embedding, shared=shared)
        return [*map(self._phrase, lines), [self._layer(layer) for layer in stack.layers]]

    def _layer(self, layer: Layer) -> int:
        if layer not in self._layers:
            self._layers[layer] = len(self.layers)
            bands, bars, lines = self._cell(layer) if isinstance(layer, Cell) else self._block(layer)
            words = self._phrase(describe_layer(layer))
            numbers = [self._phrase(line) for line in lines]
            self.layers.append([words, layer.width, layer.output_width, bands, bars, numbers])
        return self._layers[layer]

    def _block(self, block: Block) -> tuple[list[Any], list[int], list[str]]:
        parts: list[Operation] = [block.mixer] if block.cross is None else [block.mixer, block.cross]
        shown = [part for part in parts if not isinstance(part, Identity)]
        lines = [*map(_named, shown), describe_feed_forward(block)]
        bars = list(block.feed_forward)
        return [[self._box(part)] for part in shown], bars, [line for line in lines if line] or ["nothing"]

    def _cell(self, cell: Cell) -> tuple[list[Any], list[int], list[str]]:
        bands = [[self._box(branch.operation) for branch in junction.branches] for junction in cell.junctions]
        lines = [describe_branch(branch) for junction in cell.junctions for branch in junction.branches]
        return bands, [], lines

    def _box(self, operation: Operation) -> list[int]:
        shown = swatch(operation)
        if shown not in self.swatches:
            self.swatches.append(shown)
        return [self.swatches.index(shown), heads_of(operation)]

    def _phrase(self, words: str) -> int:
        short = shortened(words, _LETTERS)
        if short not in self._phrases:
            self._phrases[short] = len(self.phrases)
            self.phrases.append(short)
        return self._phrases[short]


def _named(operation: Operation) -> str:
    kind = f"{swatch(operation).name}, " if isinstance(operation, Attention | OpGraph) else ""
    return kind + describe(operation)
