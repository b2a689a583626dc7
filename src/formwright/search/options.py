"""Checks of the options of searchers: each returns a list of messages, so that all faults are reported together."""

from collections.abc import Sequence
from reprlib import repr as shown  # shortens very long numbers

from formwright.core.errors import IllegalInput

_LARGEST = 1_000_000  # beyond any sensible weight, and far from where single precision ends


def at_least(least: int, **options: object) -> list[str]:
    """List a sentence for each option that is not a whole number from `least`."""
    return [
        f"{name} is {value!r}; it must be a whole number, at least {least}."
        for name, value in options.items()
        if isinstance(value, bool) or not isinstance(value, int) or value < least
    ]


def share(**options: object) -> list[str]:
    """List a sentence for each option that is not a number from 0 to 1."""
    return [
        f"{name} is {shown(value)}; it must be a number from 0 to 1."
        for name, value in options.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ]


def not_negative(**options: object) -> list[str]:
    """List a sentence for each option that is not a number from 0, below a million."""
    return [
        f"{name} is {shown(value)}; it must be a number, at least 0 and below {_LARGEST:,}."
        for name, value in options.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST
    ]


def yes_or_no(**options: object) -> list[str]:
    """List a sentence for each option that is neither True nor False."""
    return [
        f"{name} is {value!r}; it must be True or False."
        for name, value in options.items()
        if not isinstance(value, bool)
    ]


def among(name: str, value: object, allowed: Sequence[str]) -> list[str]:
    """List a sentence if an option is none of the values allowed."""
    return [] if value in allowed else [f"{name} is {value!r}; it must be {' or '.join(map(repr, allowed))}."]


def check(faults: list[str]) -> None:
    """Raise `IllegalInput` with all messages, if any."""
    if faults:
        raise IllegalInput(" ".join(faults))
