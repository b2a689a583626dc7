"""A search space that a model draws up itself, from the importance of its parts (EFTNAS, Algorithm 1)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.space.zoo.elastic import elastic
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.importance import Importance
from formwright.supernet.parts import groups

LEAST = 0.02  # of the full width; narrower parts can be left out instead
MULTIPLE = 16  # channels that processors multiply at once

Widths = tuple[tuple[int, int], ...]  # heads and channels of each layer


@dataclass(frozen=True)
class Met:
    """A wanted cost, and what the nearest sub-network costs; `measure` is the name of the cost."""

    target: float
    cost: float
    widths: Widths
    measure: str = "cost"

    @property
    def off(self) -> float:
        """Say how close it came: by which share of the target the cost lies above it, or below where negative."""
        return self.cost / self.target - 1


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The sub-networks that a threshold on importance leaves, one for each threshold that makes a difference.

    Keeping more parts never costs less, so the one nearest to a cost is found by bisection, which always ends.
    `measure` names the cost in what is found.
    """

    card: Card
    importance: Importance
    cost: Callable[[Card], float]
    multiple: int = MULTIPLE
    measure: str = "cost"

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.sort(np.concatenate(self.importance.scores))[::-1]

    def widths(self, kept: int) -> Widths:
        """Count what is left of each layer where the `kept` most important parts stay, rounded up to what is fast."""
        threshold = self._sorted[kept - 1] if kept else np.inf
        left = {(group.layer, group.kind): 0 for group in groups(self.card)}
        for group, scores in zip(groups(self.card), self.importance.scores, strict=True):
            left[group.layer, group.kind] = self._rounded(int((scores >= threshold).sum()), group.members, group.kind)
        layers = range(len(_full(self.card)))
        return tuple((left[layer, "heads"], left[layer, "channels"]) for layer in layers)

    def _rounded(self, number: int, full: int, kind: str) -> int:
        if number < LEAST * full:
            return 0
        return number if kind == "heads" else min(full, -(-number // self.multiple) * self.multiple)

    def nearest(self, target: float) -> Met:
        """Find the sub-network whose cost is nearest to a target; `off` of the answer says how near that is."""
        if not target > 0:
            raise IllegalInput(f"a target must be above 0, not {target}")
        at = bisect_left(range(len(self._sorted) + 1), target, key=self._cost_of)
        near = [kept for kept in (at - 1, at) if 0 <= kept <= len(self._sorted)]
        best = min(near, key=lambda kept: abs(self._cost_of(kept) - target))
        return Met(target, self._cost_of(best), self.widths(best), self.measure)

    def _cost_of(self, kept: int) -> float:
        return self.cost(sub_network(self.card, self.widths(kept)))


def sub_network(card: Card, widths: Widths, hidden: int | None = None) -> Card:
    """Cut an encoder to a number of heads and channels for each layer, 0 leaves the part out, and to a hidden size."""
    heads, channels = zip(*widths, strict=True)
    sizes = () if hidden is None else (hidden,)
    space = elastic(card, [[one] for one in heads], [[one] for one in channels], hidden=sizes)
    return space.card(next(iter(space.enumerate())))


def _full(card: Card) -> Widths:
    assert card.encoder is not None
    blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    return tuple((_heads(block), block.feed_forward[0] if block.feed_forward else 0) for block in blocks)


def _heads(block: Block) -> int:
    return block.mixer.heads if isinstance(block.mixer, Attention) else 0


def targets_between(low: float, high: float, number: int) -> list[float]:
    """Give so many targets at equal steps, both ends among them."""
    if number < 2 or not 0 < low < high:
        raise IllegalInput(f"a space needs 2 or more targets that rise from above 0, not {number} from {low} to {high}")
    return [float(target) for target in np.linspace(low, high, number)]


def automatic(
    thresholds: Thresholds,
    targets: Sequence[float],
    *,
    whole: bool,
    hidden: Sequence[int] = (),
    further: Sequence[Met] = (),
) -> tuple[ElasticChoices, list[Met]]:
    """Draw up the space: every layer may have the widths that it has in one of the sub-networks nearest to the targets.

    With `whole`, the largest sub-network is the model itself; else it is the one of the highest target. `hidden` lists
    hidden sizes to choose from beside; the targets are met at the model's own, which `whole` adds to the list.
    `further` are sub-networks found by other costs, whose widths may be had as well; they stand last in the answer.
    """
    card = thresholds.card
    found = [*(thresholds.nearest(target) for target in targets), *further]
    chosen = [met.widths for met in found] + ([_full(card)] if whole else [])
    layers = list(zip(*chosen, strict=True))
    heads = tuple(tuple(sorted({one for one, _ in layer})) for layer in layers)
    channels = tuple(tuple(sorted({one for _, one in layer})) for layer in layers)
    sizes = (*hidden, card.output_width) if hidden and whole and card.output_width not in hidden else tuple(hidden)
    return ElasticChoices(card, heads, channels, tuple(sorted(sizes))), found
