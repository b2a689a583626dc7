"""A toy problem for searchers that takes no time: small spaces of real cards, scores, and the smallest study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import log2
from typing import Any

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, DynamicConvolution, Mixer, Transform
from formwright.core.errors import FormwrightError
from formwright.core.protocols import CardLike, Evaluator, Searcher
from formwright.core.records import History, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.cost import params
from formwright.space import Case, Choice, Combinator, Fields, Record, Repeat, Space, Switch

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
    mixers: dict[str, Combinator[Any]] = {"attention": Choice(("sdp", "wma")), "transform": Record.of()}
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


# what each layer should be, over and over: the mixer and its option
PATTERN = (("attention", "wma"), ("dynamic-convolution", 5), ("transform", None))
MOST_LAYERS = 12
HALF = 10  # steps after which half of the final accuracy is reached


@dataclass(frozen=True)
class Toy:
    """Score a card by how well its layers follow `PATTERN`; the metrics are `accuracy`, up to 1, and `params`.

    Twelve layers that follow the pattern, with feed-forward parts 64 wide, have an accuracy of 1. Short evaluations
    are less accurate, and less informative: their order is somewhat wrong, always in the same way.
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


def ask(searcher: Searcher, history: History, seed: int) -> History:
    """Return the history with one more trial, pending; like in a study, the proposal depends on the seed and number."""
    number = len(history.trials)
    request = searcher.ask(history, derive(seed, "ask", number))
    return History((*history.trials, Trial(number, request)))


def tell(history: History, number: int, outcome: Observation | str) -> History:
    """Return the history with trial `number` finished by an observation, or failed for a reason."""
    trial = history.trials[number]
    if isinstance(outcome, str):
        ended = replace(trial, state="failed", reason=outcome)
    else:
        ended = replace(trial, state="finished", observation=outcome)
    return History((*history.trials[:number], ended, *history.trials[number + 1 :]))


def run(searcher: Searcher, evaluator: Evaluator, trials: int, seed: int = 0) -> History:
    """Ask for and evaluate `trials` designs, one after the other."""
    history = History()
    for number in range(trials):
        history = ask(searcher, history, seed)
        history = tell(history, number, evaluator.evaluate(history.trials[number].request, None))
    return history


def run_out(searcher: Searcher, evaluator: Evaluator, most: int, ending: type[FormwrightError]) -> History:
    """Ask for and evaluate designs until the searcher raises `ending`; fail if it has not after `most` of them."""
    history = History()
    for number in range(most):
        try:
            history = ask(searcher, history, seed=0)
        except ending:
            return history
        history = tell(history, number, evaluator.evaluate(history.trials[number].request, None))
    raise AssertionError(f"the searcher went on after {most} requests; {ending.__name__} was due")


def outline(history: History) -> list[Request]:
    """List the requests of a history, without their designs."""
    return [replace(trial.request, design=None) for trial in history.trials]
