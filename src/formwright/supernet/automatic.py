"""A search space derived from a model and the importance of its parts (EFTNAS, Algorithm 1)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.space.zoo.elastic import ElasticChoices, elastic
from formwright.supernet.groups import groups
from formwright.supernet.importance import Importance

LEAST = 0.02  # of the full width; narrower parts are removed instead
MULTIPLE = 16  # channels; processors are fastest at multiples of this
Widths = tuple[tuple[int, int], ...]  # heads and channels of each layer


@dataclass(frozen=True)
class BudgetMatch:
    """A target cost and the nearest sub-network with its cost; `measure` is the name of the cost."""

    target: float
    cost: float
    widths: Widths
    measure: str = "cost"

    @property
    def off(self) -> float:
        """Return the relative deviation of the cost from the target."""
        return self.cost / self.target - 1


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The sub-networks obtained by a threshold on importance, one for each distinct threshold.

    Costs grow with the number of parts kept, so the sub-network nearest to a cost is found by bisection. `measure`
    names the cost in what is found.
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
        """Return the widths of each layer when the `kept` most important parts stay, rounded up to fast multiples."""
        threshold = self._sorted[kept - 1] if kept else np.inf
        left = {(group.layer, group.kind): 0 for group in groups(self.card)}
        for group, scores in zip(groups(self.card), self.importance.scores, strict=True):
            number, multiple = int((scores >= threshold).sum()), 1 if group.kind == "heads" else self.multiple
            if number >= LEAST * group.members:
                left[group.layer, group.kind] = min(group.members, -(-number // multiple) * multiple)
        layers = range(len(full_widths(self.card)))
        return tuple((left[layer, "heads"], left[layer, "channels"]) for layer in layers)

    def nearest(self, target: float) -> BudgetMatch:
        """Find the sub-network whose cost is nearest to a target; its `off` is the deviation."""
        if not target > 0:
            raise IllegalInput(f"a target must be above 0, not {target}")
        at = bisect_left(range(len(self._sorted) + 1), target, key=self._cost_of)
        near = [kept for kept in (at - 1, at) if 0 <= kept <= len(self._sorted)]
        best = min(near, key=lambda kept: abs(self._cost_of(kept) - target))
        return BudgetMatch(target, self._cost_of(best), self.widths(best), self.measure)

    def _cost_of(self, kept: int) -> float:
        return self.cost(sub_network(self.card, self.widths(kept)))


def sub_network(card: Card, widths: Widths, hidden: int | None = None) -> Card:
    """Cut an encoder to a number of heads and channels for each layer, 0 removes the part, and to a hidden size."""
    heads, channels = zip(*widths, strict=True)
    sizes = () if hidden is None else (hidden,)
    space = elastic(card, [[one] for one in heads], [[one] for one in channels], hidden=sizes)
    return space.card(next(iter(space.enumerate())))


def full_widths(card: Card) -> Widths:
    assert card.encoder is not None
    blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
    return tuple(
        (
            block.mixer.heads if isinstance(block.mixer, Attention) else 0,
            block.feed_forward[0] if block.feed_forward else 0,
        )
        for block in blocks
    )


def targets_between(low: float, high: float, number: int) -> list[float]:
    """Return `number` equidistant targets, both ends included."""
    if number < 2 or not 0 < low < high:
        raise IllegalInput(f"a space needs 2 or more targets that rise from above 0, not {number} from {low} to {high}")
    return [float(target) for target in np.linspace(low, high, number)]


def automatic(
    thresholds: Thresholds,
    targets: Sequence[float],
    *,
    whole: bool,
    hidden: Sequence[int] = (),
    further: Sequence[BudgetMatch] = (),
) -> tuple[ElasticChoices, list[BudgetMatch]]:
    """Build the space: the choices of a layer are its widths in the sub-networks nearest to the targets.

    With `whole`, the largest sub-network is the model itself; else it is the one of the highest target. `hidden` lists
    further hidden sizes; targets are met at the model's own, which `whole` adds to the list. `further` are sub-networks
    found by other costs, whose widths are choices as well; they are last in the result.
    """
    card = thresholds.card
    found = [*(thresholds.nearest(target) for target in targets), *further]
    chosen = [met.widths for met in found] + ([full_widths(card)] if whole else [])
    layers = list(zip(*chosen, strict=True))
    heads = tuple(tuple(sorted({one for one, _ in layer})) for layer in layers)
    channels = tuple(tuple(sorted({one for _, one in layer})) for layer in layers)
    sizes = (*hidden, card.output_width) if hidden and whole and card.output_width not in hidden else tuple(hidden)
    return ElasticChoices(card, heads, channels, tuple(sorted(sizes))), found
