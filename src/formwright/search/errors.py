"""Ways in which there is nothing left to propose."""

from formwright.core.errors import FormwrightError


class SpaceExhausted(FormwrightError, LookupError):
    """Say that every design that may be asked for has been asked for."""


class NoLegalDesign(FormwrightError, ValueError):
    """Say that no design within the limits was found, and how hard it was looked for."""
