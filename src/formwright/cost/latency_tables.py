"""Latency tables: milliseconds of a design, added up from the measured times of its parts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self, cast, get_args

import numpy as np

from formwright.arch.card import Card, Family
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Identity
from formwright.core.checks import finite, stored_fields
from formwright.core.errors import IllegalInput
from formwright.cost.conventions import LATENCY
from formwright.space.elastic_parts import elastic_parts

Times = Mapping[int, float]  # milliseconds by the size of a part
_NO_PART: Times = {0: 0.0}
_FIELDS = {"heads": "heads", "feed_forward": "channels", "cross": "cross"}  # of `PartTimes`, by the name of the part


@dataclass(frozen=True)
class PartTimes:
    """The milliseconds of one layer's parts by their size, and of everything else, at one hidden size.

    Parts are the sizes that operations declare, by their names in designs: `heads`, `cross` (heads of attention to the
    encoder), the `channels` of a feed-forward, and all others in `further`. At size 0 the layer lacks the operation;
    the times of one operation that has several parts are taken to multiply. For a translator these are the times of its
    encoder, and `decoder` has the decoder's times, by its hidden size: they depend on both, because the decoder maps
    what the encoder gives. Sizes that were not measured lie between measured ones, and are interpolated.
    """

    rest: float
    heads: Times = field(hash=False)
    channels: Times = field(hash=False)
    cross: Times = field(default_factory=lambda: _NO_PART, hash=False)
    decoder: "Mapping[int, PartTimes]" = field(default_factory=dict, hash=False)
    further: Mapping[str, Times] = field(default_factory=dict, hash=False)

    @classmethod
    def of_parts(cls, parts: Mapping[str, Times], rest: float = 0.0) -> Self:
        """Make times of those of parts by their names in designs."""
        heads, channels, cross = (parts.get(name, _NO_PART) for name in _FIELDS)
        further = {name: times for name, times in parts.items() if name not in _FIELDS}
        return cls(rest, heads, channels, cross, further=further)

    def of_part(self, name: str, size: int) -> float:
        return _between(name, self._times(name), size)

    def _times(self, name: str) -> Times:
        if name in _FIELDS:
            return cast(Times, getattr(self, _FIELDS[name]))
        if name not in self.further:
            known = ", ".join((*_FIELDS, *self.further))
            raise IllegalInput(
                f"the latency table has times of {known}, and none of {name}: measure the parts of this model again"
            )
        return self.further[name]

    def of_stack(self, stack: Stack) -> float:
        """Add up the parts of all layers of a stack, and the rest."""
        return self.rest + sum(map(self._of_layer, stack.layers))

    def _of_layer(self, layer: Layer) -> float:
        if not isinstance(layer, Block):
            raise IllegalInput("a latency table supports ordinary layers, not cells")
        found: dict[str, float] = {}
        for one in elastic_parts(layer):
            time = self.of_part(one.name, one.most)
            if one.part in found:  # a further size of the same operation: the share that it leaves of its time
                times = self._times(one.name)
                whole = times[max(times)]
                time = found[one.part] * (time / whole if whole else 1.0)
            found[one.part] = time
        if unknown := sizeless_operations(layer):
            raise IllegalInput(f"the latency table has no time of {unknown[0]}, which has no size that may be smaller")
        return sum(found.values())


@lru_cache(maxsize=1 << 12)
def sizeless_operations(layer: Block) -> tuple[str, ...]:
    """List the operations of a layer of which nothing can be smaller, so that no time of theirs is known, by type."""
    with_sizes, known = {one.part for one in elastic_parts(layer)}, layer.operations
    return tuple(one.TYPE for part, one in known if part not in with_sizes and not isinstance(one, Identity))


@dataclass(frozen=True)
class LatencyTable:
    """The milliseconds of sub-networks, without running them; equal cards have equal latency.

    `by_hidden` has the times of the encoder, or of a decoder that stands alone, by its hidden size; `family` is that of
    the designs.
    """

    COST: ClassVar[str] = LATENCY  # what it adds up
    by_hidden: Mapping[int, PartTimes] = field(hash=False)
    family: Family = "encoder"

    def __call__(self, card: Card) -> float:
        if card.family != self.family:
            raise IllegalInput(f"the latency table covers {self.family} designs, and this is a {card.family} design")
        total, known = 0.0, self.by_hidden
        for stack in card.stacks:
            hidden = stack.output_width
            if hidden not in known:
                sizes = ", ".join(map(str, known))
                raise IllegalInput(
                    f"the latency table covers {self.family} designs of hidden size {sizes}, not {hidden}"
                )
            total += known[hidden].of_stack(stack)
            known = known[hidden].decoder
        return total

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "by_hidden": {str(hidden): asdict(one) for hidden, one in self.by_hidden.items()},
        }

    @classmethod
    def from_json(cls, data: Any) -> "LatencyTable":
        values = stored_fields(cls, data)
        if values["family"] not in get_args(Family):
            raise IllegalInput(f"the family of a latency table is one of {get_args(Family)}, not {values['family']!r}")
        by_hidden = {hidden: _times(times) for hidden, times in _by_width("hidden sizes", values["by_hidden"]).items()}
        return cls(by_hidden, values["family"])


def _times(data: Any) -> PartTimes:
    values = stored_fields(PartTimes, data)
    if not isinstance(values["further"], Mapping):
        raise IllegalInput(f"further of a latency table must map parts to their times, not {values['further']!r}")
    named = {name: _part(name, values[name]) for name in ("heads", "channels", "cross")}
    further = {str(name): _part(str(name), times) for name, times in values["further"].items()}
    decoder = {}
    if values["decoder"] != {}:
        decoder = {hidden: _times(times) for hidden, times in _by_width("decoder", values["decoder"]).items()}
    return PartTimes(finite("the time of the rest", values["rest"]), **named, decoder=decoder, further=further)


def _part(name: str, data: Any) -> dict[int, float]:
    return {width: finite(f"the time of {width} {name}", value) for width, value in _by_width(name, data).items()}


def _by_width(name: str, data: Any) -> dict[int, Any]:
    if not isinstance(data, Mapping) or not data or not all(str(width).isdecimal() for width in data):
        raise IllegalInput(f"{name} of a latency table must map whole numbers to times, not {data!r}")
    return {int(width): value for width, value in data.items()}


def _between(name: str, times: Mapping[int, float], width: int) -> float:
    known = sorted(times)
    if not known[0] <= width <= known[-1]:
        raise IllegalInput(
            f"the latency table has times of {known[0]} to {known[-1]} {name}, not of {width}: measure the parts of "
            "this model again"
        )
    return float(np.interp(width, known, [times[one] for one in known]))


@dataclass(frozen=True)
class OperationTimes:
    """The milliseconds of embeddings by the width of their tables, of operations at a width, and of joints.

    A joint is the linear map between two widths, the lower one first; it takes as long either way.
    """

    embeddings: Mapping[int, float] = field(hash=False)
    operations: Mapping[tuple[str, int], float] = field(hash=False)
    joints: Mapping[tuple[int, int], float] = field(hash=False)

    def of_chain(self, width: int, operations: tuple[str, ...]) -> float:
        return sum(self.operations[operation, width] for operation in operations)

    def of_joint(self, below: int, above: int) -> float:
        """Return the milliseconds of the map between two widths: 0 if they are equal."""
        return 0.0 if below == above else self.joints[min(below, above), max(below, above)]

    def to_json(self) -> dict[str, Any]:
        return {
            "embeddings": [[width, time] for width, time in self.embeddings.items()],
            "operations": [[name, width, time] for (name, width), time in self.operations.items()],
            "joints": [[below, above, time] for (below, above), time in self.joints.items()],
        }

    @classmethod
    def from_json(cls, data: Any) -> "OperationTimes":
        values = stored_fields(cls, data)
        try:
            return cls(
                {width: finite("the time of an embedding", time) for width, time in values["embeddings"]},
                {(name, width): finite(f"the time of {name}", time) for name, width, time in values["operations"]},
                {(low, high): finite("the time of a joint", time) for low, high, time in values["joints"]},
            )
        except (TypeError, ValueError) as error:
            raise IllegalInput(f"the times of operations cannot be read: {error}") from None
