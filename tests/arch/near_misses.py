"""Change one thing in a design: a number, a word, or the order of two parts."""

from collections.abc import Callable, Iterator
from typing import Any

from numpy.random import Generator
from tests.arch.random_ops import ACTIVATIONS, chance, pick

from formwright.arch.card import Card
from formwright.arch.primitives import BINARY, UNARY
from formwright.core.errors import IllegalDesign

Change = Callable[[Any, Generator], Any]


def near_miss(card: Card, rng: Generator) -> Card:
    """Draw a legal design that differs from `card` in one place of its JSON; its graph may be the same all the same."""
    while True:
        data = card.to_json()
        sites = list(_sites(data))
        # what only rewires a design keeps all labels, so it is the hardest to tell apart and is tried most
        rewiring = [site for site in sites if site[2] in _REWIRING]
        holder, name, change = pick(rng, rewiring if rewiring and chance(rng, 0.7) else sites)
        holder[name] = change(holder[name], rng)
        try:
            changed = Card.from_json(data)
        except IllegalDesign:
            continue
        if changed != card:
            return changed


def _sites(data: Any) -> Iterator[tuple[Any, Any, Change]]:
    """List the holder, the name and the change of every place that can be changed."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, item in items:
        if name in _CHANGES and not (name == "layers" and isinstance(item, list)):
            yield data, name, _CHANGES[name]
        elif type(item) is int and name != "schema":
            yield data, name, _other_number
        elif isinstance(item, list) and len(item) > 1:
            yield data, name, _other_order
        elif isinstance(item, dict) and "left" in item and "right" in item:
            yield data, name, _other_sides
        if name != "term":
            yield from _sites(item)


def _other_number(value: int, rng: Generator) -> int:
    return pick(rng, (value + 1, value - 1, value * 2, value // 2))


def _other_order(items: list[Any], rng: Generator) -> list[Any]:
    place = int(rng.integers(len(items) - 1))
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def _other_sides(junction: dict[str, Any], rng: Generator) -> dict[str, Any]:
    """Swap the two branches, or only the states that they read."""
    left, right = junction["left"], junction["right"]
    if pick(rng, (True, False)):
        left, right = {**right, "input": left["input"]}, {**left, "input": right["input"]}
    return {**junction, "left": right, "right": left}


def _other_state(state: int, rng: Generator) -> int:
    return int(rng.integers(state + 2))


def _other_word(*words: Any) -> Change:
    return lambda _, rng: pick(rng, words)


def _other_term(term: Any, rng: Generator) -> Any:
    """Swap the operands, or exchange the operation, somewhere in an op graph."""
    if isinstance(term, str):
        return pick(rng, "QKVP")
    place = int(rng.integers(len(term)))
    if place:
        return [*term[:place], _other_term(term[place], rng), *term[place + 1 :]]
    if len(term) == 2:
        return [pick(rng, list(UNARY)), term[1]]
    return [term[0], term[2], term[1]] if pick(rng, (True, False)) else [pick(rng, list(BINARY)), *term[1:]]


_CHANGES: dict[Any, Change] = {
    "activation": _other_word(*ACTIVATIONS),
    "combine": _other_word("add", "concatenate", "multiply"),
    "norm": _other_word("pre", "post", True, False),
    "positions": _other_word("learned", "sinusoidal", "relative", "none"),
    "score": _other_word("sdp", "wma"),
    "transform": _other_word("dft", "dct"),
    "input": _other_state,
    "layers": lambda value, rng: pick(rng, (1, 2, 3)),
    "term": _other_term,
    "causal": lambda value, rng: not value,
    "final_norm": lambda value, rng: not value,
}
_REWIRING: tuple[Change, ...] = (_other_order, _other_sides, _other_state, _other_term)
