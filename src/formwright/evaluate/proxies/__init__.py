"""Scores that need no training, by name; other packages add theirs by an entry point."""

from collections.abc import Callable

from formwright.arch.card import Card
from formwright.core.registry import Registry

Proxy = Callable[[Card, int], float]  # of a card and a seed; higher promises more

_HERE = "formwright.evaluate.proxies"

PROXIES: Registry[Proxy] = Registry(
    "proxy",
    {"params": f"{_HERE}.size:parameter_count", "synflow": f"{_HERE}.synflow:synflow"},
    "formwright.proxies",
)
