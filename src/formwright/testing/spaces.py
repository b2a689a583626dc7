"""Small spaces of real cards, from a dozen designs to more than anyone could list."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, DynamicConvolution, Mixer, Transform
from formwright.space import Case, Choice, Fields, Part, Record, Repeat, Space, Switch

WIDTH = 16
_EMBEDDING = TokenEmbedding(vocabulary=100, width=WIDTH, length=32)


@dataclass(frozen=True)
class Build:
    """Make the card of a design; what the design says beyond its layers does not matter."""

    def __call__(self, design: Fields) -> Card:
        """Return the encoder with the design's layers."""
        return Card(encoder=Stack(_EMBEDDING, tuple(_block(layer) for layer in design["layers"])))


def layered(name: str, depths: tuple[int, ...], feed_forward: tuple[int, ...], kernels: tuple[int, ...]) -> Space:
    """Make a space of encoders whose layers differ in mixer, option of the mixer and feed-forward width."""
    return Space(
        name, Record.of(layers=_layers(depths, feed_forward, kernels)), Build(), "a space to test searchers on"
    )


def tiny() -> Space:
    """Return a conditional space of 12 designs, to be used up."""
    return layered("tiny", (1, 2), (32,), ())


def small() -> Space:
    """Return a conditional space of 342 designs, to be searched and checked against all of them."""
    return layered("small", (1, 2), (16, 32, 64), (3, 5, 9))


def large() -> Space:
    """Return a conditional space of 12 layers at most, too large to list."""
    return layered("large", (4, 8, 12), (16, 32, 64), (3, 5, 9))


def twins() -> Space:
    """Return a space of 24 designs, two for each of 12 cards."""
    root = Record.of(side=Choice(("left", "right")), layers=_layers((1, 2), (32,), ()))
    return Space("twins", root, Build(), "each card twice")


def _layers(depths: tuple[int, ...], feed_forward: tuple[int, ...], kernels: tuple[int, ...]) -> Repeat:
    mixers: dict[str, Part[Any]] = {"attention": Choice(("sdp", "wma")), "transform": Record.of()}
    if kernels:
        mixers["convolution"] = Choice(kernels)
    return Repeat(Record.of(mixer=Switch.of(**mixers), feed_forward=Choice(feed_forward)), depths)


@cache
def _block(layer: Fields) -> Block:
    return Block(WIDTH, _mixer(layer["mixer"]), (layer["feed_forward"],))


def _mixer(mixer: Case) -> Mixer:
    match mixer.tag:
        case "attention":
            return Attention(2, WIDTH // 2, mixer.value)
        case "convolution":
            return DynamicConvolution(mixer.value, 2, WIDTH // 2)
        case _:
            return Transform("dft")
