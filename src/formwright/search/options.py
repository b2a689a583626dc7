"""Checks of the options of searchers: each lists what is wrong, so that all faults can be told at once."""

from formwright.core.errors import IllegalInput


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
        f"{name} is {value!r}; it must be a number from 0 to 1."
        for name, value in options.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ]


def check(faults: list[str]) -> None:
    """Raise `IllegalInput` with all the sentences, if there are any."""
    if faults:
        raise IllegalInput(" ".join(faults))
