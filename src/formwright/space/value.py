"""Values that designs are made of: immutable, hashable and picklable, so that equal designs are one design.

A design is a scalar or a tuple of scalars (from a `Choice`), a `Fields` (from a `Record`), a tuple of group values
(from a `Repeat`), a `Case` (from a `Switch`) or a term (from an `Expressions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formwright.core.remember import remembers


@remembers
@dataclass(frozen=True, repr=False)
class Fields(Mapping[str, Any]):
    """Hold named values in a fixed order; read one as `value.heads` or `value["heads"]`."""

    pairs: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, **values: Any) -> Fields:
        """Make fields from keyword arguments, in the order given."""
        return cls(tuple(values.items()))

    def __getitem__(self, name: str) -> Any:
        for field, value in self.pairs:
            if field == name:
                return value
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name == "pairs":  # absent while a copy is being made; looking for it here would never end
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}; fields are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return (field for field, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Fields({', '.join(f'{field}={value!r}' for field, value in self.pairs)})"


@remembers
@dataclass(frozen=True)
class Case:
    """Hold the case that a `Switch` took and the value of that case alone."""

    tag: str
    value: Any
