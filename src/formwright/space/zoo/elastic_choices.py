"""What the sub-networks of one encoder may be, as plain data: an elastic space that can be written down."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from formwright.arch.card import Card
from formwright.core.checks import stored_fields
from formwright.core.errors import IllegalInput
from formwright.space.space import Space
from formwright.space.zoo.elastic import elastic

Lists = tuple[tuple[int, ...], ...]  # the widths of each layer, from the input up


@dataclass(frozen=True)
class ElasticChoices:
    """List, for every layer of an encoder, the heads and the feed-forward widths it may have, and the hidden sizes.

    0 leaves a part of a layer out. Without hidden sizes the encoder keeps its own.
    """

    card: Card
    heads: Lists
    feed_forward: Lists
    hidden: tuple[int, ...] = ()

    @property
    def space(self) -> Space:
        """Make the space of all sub-networks."""
        return elastic(self.card, self.heads, self.feed_forward, hidden=self.hidden, name="elastic")

    @property
    def largest(self) -> Card:
        """Give the sub-network that has the most of everything."""
        return self._cut(max)

    @property
    def smallest(self) -> Card:
        """Give the sub-network that has the least of everything."""
        return self._cut(min)

    @property
    def count(self) -> int:
        """Count the sub-networks."""
        return prod(len(choices) for choices in (*self.heads, *self.feed_forward, self.hidden or (0,)))

    def design(self, widths: Sequence[tuple[int, int]], hidden: int | None = None) -> Any:
        """Give the design of a sub-network by the heads and the feed-forward width of each layer.

        Its hidden size is the largest, unless another is given.
        """
        layers = [{"heads": heads, "feed_forward": channels} for heads, channels in widths]
        alike = len(set(self.heads)) == len(set(self.feed_forward)) == 1
        data: dict[str, Any] = {
            "layers": layers if alike else {f"layer_{index}": layer for index, layer in enumerate(layers)}
        }
        return self.space.from_json(data | ({"hidden": hidden or max(self.hidden)} if self.hidden else {}))

    def _cut(self, pick: Any) -> Card:
        heads, channels = ([[pick(one)] for one in lists] for lists in (self.heads, self.feed_forward))
        hidden = [pick(self.hidden)] if self.hidden else []
        space = elastic(self.card, heads, channels, hidden=hidden)
        return space.card(next(iter(space.enumerate())))

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        lists = {"heads": self.heads, "feed_forward": self.feed_forward}
        plain = {name: [list(one) for one in value] for name, value in lists.items()}
        return {"card": self.card.to_json(), **plain, "hidden": list(self.hidden)}

    @classmethod
    def from_json(cls, data: Any) -> "ElasticChoices":
        """Read what `to_json` gave."""
        values = stored_fields(cls, data)
        if not isinstance(values["hidden"], Sequence):
            raise IllegalInput(f"hidden must list hidden sizes, or none, not {values['hidden']!r}")
        return cls(
            Card.from_json(values["card"]),
            _lists("heads", values["heads"]),
            _lists("feed_forward", values["feed_forward"]),
            tuple(values["hidden"]),
        )


def _lists(name: str, given: Any) -> Lists:
    if not isinstance(given, Sequence) or not all(isinstance(one, Sequence) and one for one in given):
        raise IllegalInput(f"{name} must list, for every layer, the widths it may have")
    return tuple(tuple(one) for one in given)
