"""Training-free proxies by name; other packages add theirs by an entry point."""

from collections.abc import Callable

from formwright.arch.card import Card
from formwright.core.registry import Registry
from formwright.cost import params

Proxy = Callable[[Card, int], float]  # of a card and a seed; higher is better
_HERE = "formwright.evaluate.proxies"

PROXIES: Registry[Proxy] = Registry(
    "proxy", {"params": f"{_HERE}:parameter_count", "synflow": f"{_HERE}.synflow:synflow"}, "formwright.proxies"
)


def parameter_count(card: Card, _: int = 0) -> float:
    """Count the parameters: simple, and strong, as larger models are often better."""
    return float(params(card))
