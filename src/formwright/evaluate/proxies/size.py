"""The simplest proxy, and a strong one: larger models are often better."""

from formwright.arch.card import Card
from formwright.cost import params


def parameter_count(card: Card, _: int = 0) -> float:
    """Count the parameters; the seed does not matter."""
    return float(params(card))
