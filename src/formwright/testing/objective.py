"""A toy problem that takes no time and whose best design is known."""

from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Any

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention, DynamicConvolution
from formwright.core.protocols import CardLike
from formwright.core.records import Observation, Request, Spent
from formwright.cost import params

# what each layer should be, over and over: the mixer and its option
PATTERN = (("attention", "wma"), ("dynamic-convolution", 5), ("transform", None))
MOST_LAYERS = 12
HALF = 10  # after so many steps half of the final accuracy is reached


@dataclass(frozen=True)
class Toy:
    """Score a card by how well its layers follow `PATTERN`; the metrics are `accuracy`, up to 1, and `params`.

    Twelve layers that follow the pattern, with feed-forward parts 64 wide, have an accuracy of 1. Short evaluations
    are less accurate, and less telling: their order is somewhat wrong, always in the same way.
    """

    def evaluate(self, request: Request, context: Any = None) -> Observation:
        """Return the metrics of a request at its budget."""
        steps = request.budget.steps
        share = 1.0 if steps is None else steps / (steps + HALF)
        noise = int(request.card.digest[:8], 16) / 2**32 - 0.5
        metrics = {
            "accuracy": share * accuracy(request.card) + 0.2 * (1.0 - share) * noise,
            "params": float(params(_card(request.card))),
        }
        return Observation(metrics, Spent(steps=steps or 0))


def accuracy(card: CardLike) -> float:
    """Return the accuracy of a card after a full evaluation."""
    encoder = _card(card).encoder
    assert encoder is not None, "the toy problem scores encoders"
    blocks = [block for block in encoder.layers if isinstance(block, Block)]
    merits = sum(_merit(index, block) for index, block in enumerate(blocks))
    alike = sum(above.mixer == below.mixer for below, above in pairwise(blocks))
    return (merits - 0.25 * alike) / MOST_LAYERS


def _merit(index: int, block: Block) -> float:
    kind, option = PATTERN[index % len(PATTERN)]
    fits = 0.25 * (kind == block.mixer.TYPE) + 0.5 * (_option(block) == option and kind == block.mixer.TYPE)
    return fits + 0.125 * log2(block.feed_forward[0] / 16)


def _option(block: Block) -> str | int | None:
    if isinstance(block.mixer, Attention):
        return block.mixer.score
    return block.mixer.kernel if isinstance(block.mixer, DynamicConvolution) else None


def _card(card: CardLike) -> Card:
    assert isinstance(card, Card), "the toy problem scores Formwright's cards"
    return card
