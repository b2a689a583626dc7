"""Checks that records make of their own fields while they are built."""

import math
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from formwright.core.errors import IllegalInput

_LONGEST_NAME = 200  # bytes; file systems allow 255, and drafts of files have longer names


def finite(what: str, value: object) -> float:
    """Return `value` as a float; raise `IllegalInput`, calling it `what`, unless it is a finite number."""
    # bool is a number to isinstance, and never meant as one here
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise IllegalInput(f"{what} is {value!r}; it must be a finite number.")
    return float(value)


def natural(what: str, value: object, below: float = 2**63) -> int:
    """Return `value` as an int; raise `IllegalInput`, calling it `what`, unless it is a whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < below:
        raise IllegalInput(f"{what} is {value!r}; it must be a whole number, at least 0 and below 2**63.")
    return int(value)


def folder_name(what: str, name: Any) -> str:
    """Return `name`; raise `IllegalInput`, calling it that of `what`, unless it names a folder within another one.

    Names come from databases and files of others: one with a separator, or `..`, would lead elsewhere.
    """
    legal = isinstance(name, str) and name.isprintable() and not name.startswith(".") and not set(name) & {"/", "\\"}
    if not legal or not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST_NAME:
        needed = f"visible characters, at most {_LONGEST_NAME} bytes, no / or \\, and no dot at the start"
        raise IllegalInput(f"{what} cannot be called {name!r}: a name has {needed}.")
    return str(name)


def put(record: object, **values: object) -> None:
    """Set fields of a frozen dataclass that is still being built, to normalise them."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def stored_fields(kind: type[Any], data: Any, left_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return `data` if it is an object with exactly the fields of the dataclass `kind`, else raise `IllegalInput`."""
    names = {entry.name for entry in fields(kind)} - set(left_out)
    if not isinstance(data, dict) or set(data) != names:
        found = sorted(data) if isinstance(data, dict) else data
        raise IllegalInput(f"a stored {kind.__name__} must have the fields {sorted(names)}, not {found!r}.")
    return data
