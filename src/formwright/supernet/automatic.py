"""A search space derived from a model and the importance of its parts (EFTNAS, Algorithm 1)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.space.elastic import ElasticChoices, FurtherSizes
from formwright.space.elastic_parts import (
    OPTIONS,
    ElasticPart,
    LayerSizes,
    layers_of,
    resized,
    scored_parts,
    shares_hidden,
    stacks_of,
    with_layers,
    with_stacks,
)
from formwright.supernet.importance import Importance

LEAST = 0.02  # of the full width; narrower parts are removed instead
MULTIPLE = 16  # channels; processors are fastest at multiples of this


@dataclass(frozen=True)
class BudgetMatch:
    """A target cost and the nearest sub-network with its cost; `measure` is the name of the cost."""

    target: float
    cost: float
    widths: LayerSizes
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

    def widths(self, kept: int) -> LayerSizes:
        """Return the sizes of each layer when the `kept` most important parts stay, rounded up to fast multiples."""
        threshold = self._sorted[kept - 1] if kept else np.inf
        scores = iter(self.importance.scores)  # as `groups` lists them: by layer, and in the order of its parts
        return tuple(
            tuple(self._size(part, int((next(scores) >= threshold).sum())) for part in scored_parts(layer))
            for layer in layers_of(self.card)
        )

    def _size(self, part: ElasticPart, number: int) -> int:
        multiple = self.multiple if part.rounded else 1
        least = min(part.least * multiple, part.most)
        return max(least, min(part.most, -(-number // multiple) * multiple) if number >= LEAST * part.most else 0)

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


def sub_network(card: Card, sizes: LayerSizes, hidden: int | None = None) -> Card:
    """Cut a design to sizes for the scored parts of each layer, 0 removes the part, and all stacks to a hidden size."""
    rows, changes = iter(sizes), {}
    for key, stack in stacks_of(card).items():
        layers = tuple(
            resized(layer, dict(zip((part.name for part in scored_parts(layer)), next(rows), strict=True)))
            for layer in stack.layers
        )
        changes[key] = with_layers(stack, layers, hidden)
    return with_stacks(card, changes)


def full_widths(card: Card) -> LayerSizes:
    """Give the sizes of the design itself."""
    return tuple(tuple(part.most for part in scored_parts(layer)) for layer in layers_of(card))


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
    return choices_between(card, chosen, hidden, own=whole), found


def choices_between(
    card: Card, chosen: Sequence[LayerSizes], hidden: Sequence[int] = (), *, own: bool = False
) -> ElasticChoices:
    """List for every layer the sizes that it has in some sub-networks, and the hidden sizes.

    Where there are hidden sizes, `own` adds those of the design.
    """
    parts = [scored_parts(layer) for layer in layers_of(card)]
    given: dict[str, Any] = {}
    for option in dict.fromkeys(part.option for layer in parts for part in layer):
        sizes = [
            {row[index][place] for row in chosen for place, part in enumerate(layer) if part.option == option}
            for index, layer in enumerate(parts)
        ]
        given[option] = tuple(tuple(sorted(one)) for one in sizes)
    further = tuple(FurtherSizes(option, given.pop(option)) for option in sorted(given.keys() - {*OPTIONS}))
    full = [{stack.embedding.width} if hidden and own else set() for stack in card.stacks]
    widths = [tuple(sorted({*hidden, *width})) for width in full]
    decoder = widths[-1] if len(widths) > 1 and not shares_hidden(card) else ()
    return ElasticChoices(card, hidden=widths[0], decoder_hidden=decoder, further=further, **given)
