"""Remember, on a value itself, what follows from it.

Designs share their layers, so the same layer is hashed, drawn and checked thousands of times. What is remembered lives
and dies with its value, and never travels with it to another process.
"""

import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def remember(function: Callable[[T], R]) -> Callable[[T], R]:
    """Make a pure function of one value work once for each value; the value's class stands under `remembers`."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def remembered(value: T) -> R:
        memory = value.__dict__
        if key not in memory:
            memory[key] = function(value)
        return memory[key]  # type: ignore[no-any-return]

    return remembered


def remembers(kind: type[T]) -> type[T]:
    """Let a frozen dataclass remember its hash and other facts; stand above ``@dataclass(frozen=True)``."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]

    def state(self: Any) -> dict[str, Any]:
        # hashes of text differ between processes, so a pickled value must not carry its own
        return {name: self.__dict__[name] for name in names}

    kind.__hash__ = remember(kind.__hash__)  # type: ignore[assignment, method-assign]
    kind.__getstate__ = state  # type: ignore[method-assign]
    return kind
