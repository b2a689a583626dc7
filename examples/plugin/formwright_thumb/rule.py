"""A sampling rule: draw several random designs and train the cheapest."""

from dataclasses import dataclass
from typing import ClassVar

from formwright.core.options import option
from formwright.cost import params
from formwright.supernet.rules import Rule


@dataclass(frozen=True)
class Thrifty(Rule):
    """Draw several designs at random, and train the one with the fewest parameters."""

    NAME: ClassVar[str] = "thrifty"
    drawn: int = option(3, "designs that are drawn for each one that is trained", least=1)

    def bind(self, hull, steps, seed=0):
        """Give what draws the designs of a step: from its generator alone, so that a training can be resumed."""

        def draw(rng, step):
            cards = [hull.space.card(hull.space.sample(rng, "gene")) for _ in range(self.drawn)]
            return [min(cards, key=params)]

        return draw

    def work(self, middle, smallest):
        """Say what a step takes, as a share of the largest design's."""
        return smallest + (middle - smallest) / self.drawn
