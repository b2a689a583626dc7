"""Milliseconds of chains of operations, added up from what each operation took when it was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from formwright.core.checks import finite, stored_fields
from formwright.core.errors import IllegalInput


@dataclass(frozen=True)
class OperationTimes:
    """The milliseconds of embeddings by the width of their tables, of operations at a width, and of joints.

    A joint is the linear map between two widths, the lower one first; it takes as long either way.
    """

    embeddings: Mapping[int, float] = field(hash=False)
    operations: Mapping[tuple[str, int], float] = field(hash=False)
    joints: Mapping[tuple[int, int], float] = field(hash=False)

    def of_chain(self, width: int, operations: tuple[str, ...]) -> float:
        """Give what the operations of one block take."""
        return sum(self.operations[operation, width] for operation in operations)

    def of_joint(self, below: int, above: int) -> float:
        """Give what it takes to get from one width to another: nothing where they are the same."""
        return 0.0 if below == above else self.joints[min(below, above), max(below, above)]

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return {
            "embeddings": [[width, time] for width, time in self.embeddings.items()],
            "operations": [[name, width, time] for (name, width), time in self.operations.items()],
            "joints": [[below, above, time] for (below, above), time in self.joints.items()],
        }

    @classmethod
    def from_json(cls, data: Any) -> "OperationTimes":
        """Read what `to_json` gave."""
        values = stored_fields(cls, data)
        try:
            return cls(
                {width: finite("the time of an embedding", time) for width, time in values["embeddings"]},
                {(name, width): finite(f"the time of {name}", time) for name, width, time in values["operations"]},
                {(low, high): finite("the time of a joint", time) for low, high, time in values["joints"]},
            )
        except (TypeError, ValueError) as error:
            raise IllegalInput(f"the times of operations cannot be read: {error}") from None
