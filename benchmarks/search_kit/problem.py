"""A made-up conditional problem over real cards: encoders of up to twelve layers, accuracy against parameters.

The accuracy is a formula, the parameters are counted from the card. What the formula rewards: different kinds of
layers, convolutions below and attention above, neighbours of different kinds, options that fit the neighbours and the
width; further layers, and wider ones, bring less and less. A short evaluation sees a share of it, and sees it blurred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from math import exp, log2
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, DynamicConvolution, Mixer, Transform
from formwright.core.records import History, Objective, Observation, Request, Spent
from formwright.cost import params
from formwright.search.scores import hypervolume
from formwright.space import Case, Choice, Fields, Record, Repeat, Space, Switch

GOALS = (Objective("accuracy", "max"), Objective("params", "min"))
FULL = 27  # steps of a full evaluation
WIDTHS, FEED_FORWARD = (64, 128, 256), (128, 256, 512, 1024)
HOMES = {"convolution": 0.15, "transform": 0.5, "attention": 0.85}  # where in the stack each kind does most
WORST = (0.5, 10_500_000.0)  # no design is less accurate, and none is larger


def space() -> Space:
    """Make the space: a width for all layers, and for each its kind, the options of that kind and the feed-forward."""
    kinds = Switch.of(
        attention=Record.of(score=Choice(("sdp", "wma")), heads=Choice((2, 4, 8))),
        transform=Choice(("dft", "dct")),
        convolution=Record.of(kernel=Choice((3, 5, 9, 15)), heads=Choice((2, 4, 8))),
    )
    layer = Record.of(kind=kinds, feed_forward=Choice(FEED_FORWARD))
    root = Record.of(width=Choice(WIDTHS), layers=Repeat(layer, tuple(range(1, 13))))
    return Space("twelve-layers", root, build, "a problem to compare searchers on")


def build(design: Fields) -> Card:
    """Make the card of a design."""
    width: int = design["width"]
    blocks = tuple(_block(width, layer["kind"], layer["feed_forward"]) for layer in design["layers"])
    return Card(encoder=Stack(TokenEmbedding(vocabulary=2_000, width=width, length=128), blocks))


@cache
def _block(width: int, kind: Case, feed_forward: int) -> Block:
    return Block(width, _mixer(kind, width), (feed_forward,))


def _mixer(kind: Case, width: int) -> Mixer:
    match kind.tag:
        case "attention":
            return Attention(kind.value["heads"], width // kind.value["heads"], kind.value["score"])
        case "convolution":
            return DynamicConvolution(kind.value["kernel"], kind.value["heads"], width // kind.value["heads"])
        case _:
            return Transform(kind.value)


def accuracy(design: Fields) -> float:
    """Return the accuracy of a design after a full evaluation, from 0.5 up to nearly 1."""
    layers, width = design["layers"], design["width"]
    kinds = [layer["kind"].tag for layer in layers]
    worth = sum(0.88**index * _worth(index, layers, width) for index in range(len(layers)))
    mixed = 1.0 + 0.15 * (len(set(kinds)) - 1)
    wide = 1.0 - exp(-width / 90)
    return 0.5 + 0.48 * (1.0 - exp(-worth * mixed * wide / 3.0))


def _worth(index: int, layers: Sequence[Fields], width: int) -> float:
    layer = layers[index]
    place = (index + 0.5) / len(layers)
    below = layers[index - 1]["kind"].tag if index else None
    at_home = exp(-((place - HOMES[layer["kind"].tag]) ** 2) / 0.15)
    fed = 1.0 - exp(-layer["feed_forward"] / (1.5 * width))
    return at_home * fed * _fit(layer["kind"], place, below, width) * (0.75 if layer["kind"].tag == below else 1.0)


def _fit(kind: Case, place: float, below: str | None, width: int) -> float:
    """Say how well the options of a layer fit its place, the layer below it and the width."""
    if kind.tag == "transform":
        return 0.75 if (kind.value == "dct") == (below == "convolution") else 0.55
    heads = 1.0 - 0.12 * abs(log2(width / kind.value["heads"] / 32))
    if kind.tag == "attention":
        return heads * (1.0 if (kind.value["score"] == "wma") == (below == "convolution") else 0.8)
    return heads * (1.0 - 0.1 * abs(log2(kind.value["kernel"] / (3.0 + 12.0 * place))))


class Problem:
    """Evaluate requests, as a study does."""

    @cached_property
    def space(self) -> Space:
        """Return the space of the problem."""
        return space()

    def evaluate(self, request: Request, context: Any = None) -> Observation:
        """Return the metrics of a request at its budget."""
        steps = request.budget.steps or FULL
        share = steps / FULL
        # drawn from the digest, so always the same for one card: uniform, with a standard deviation of 0.03 at no steps
        chance = int(request.card.digest[:8], 16) / 2**31 - 1.0
        blur = 0.03 * (1.0 - share) ** 2 * 1.73 * chance
        seen = 0.5 + (accuracy(_fields(request.design)) - 0.5) * (0.6 + 0.4 * share**0.5) + blur
        return Observation({"accuracy": seen, "params": _params(request.card)}, Spent(steps=steps))


def volume(points: Sequence[tuple[float, float]]) -> float:
    """Return the hypervolume of accuracies and parameters, as a share of what a perfect model of no size would have."""
    shares = [(accuracy, size / WORST[1]) for accuracy, size in points]
    return hypervolume(shares, (WORST[0], 1.0), ("max", "min")) / 0.5


def true_points(history: History) -> list[tuple[float, float]]:
    """List the accuracy and the parameters of each full evaluation, in the order finished."""
    full = [trial.request for trial in history.finished if trial.request.budget.steps in (None, FULL)]
    return [(accuracy(_fields(request.design)), _params(request.card)) for request in full]


def _params(card: Any) -> float:
    return float(params(card))


def _fields(design: object) -> Fields:
    assert isinstance(design, Fields), "every request of this benchmark has a design"
    return design
