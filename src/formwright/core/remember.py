"""Remember the hash of a value that is looked up often."""

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def remember_hash(kind: type[T]) -> type[T]:
    """Make a frozen dataclass compute its hash once; stand above ``@dataclass(frozen=True)``.

    Deep values hash slowly, and designs share their layers, so the same layer is looked up thousands of times.
    """
    plain = kind.__hash__
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]

    def remembered(self: Any) -> int:
        memory = self.__dict__
        if "_hash" not in memory:
            memory["_hash"] = plain(self)
        return memory["_hash"]  # type: ignore[no-any-return]

    def state(self: Any) -> dict[str, Any]:
        # hashes of text differ between processes, so a pickled value must not carry its own
        return {name: self.__dict__[name] for name in names}

    kind.__hash__ = remembered  # type: ignore[method-assign]
    kind.__getstate__ = state  # type: ignore[method-assign]
    return kind
