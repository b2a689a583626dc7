"""`formwright list`: what can be named on the command line."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from formwright.cli.output import large, print_entries, print_json


class Kind(StrEnum):
    """What can be listed."""

    spaces = "spaces"
    cards = "cards"
    ops = "ops"
    costs = "costs"
    tasks = "tasks"
    searchers = "searchers"
    proxies = "proxies"
    recipes = "recipes"


def list_names(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_choices=True)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List search spaces, designs (cards) or methods (recipes) that were published, or what they are made of.

    That is operations, cost conventions, tasks, searchers and proxies.
    """
    entries = _LISTS[kind]()
    if as_json:
        print_json({str(kind): entries})
        return
    if "paper" in entries[0]:  # it has a column of its own, and need not be named again
        entries = [{**entry, "about": entry["about"].partition(" (")[0]} for entry in entries]
    columns = [name for name in entries[0] if name != "name"]
    headings = [">" + name if isinstance(entries[0][name], int) else name for name in columns]
    rows = [[entry["name"], *(_cell(entry[name]) for name in columns)] for entry in entries]
    print_entries(["name", *headings], rows)


def _cell(item: Any) -> str:
    return large(item) if isinstance(item, int) else str(item)


def _spaces() -> list[dict[str, Any]]:
    from formwright.space.zoo import SPACES

    spaces = [SPACES.get(name) for name in SPACES.names()]
    return [{"name": space.name, "count": space.count(), "about": space.about} for space in spaces]


def _cards() -> list[dict[str, Any]]:
    from formwright.cost import macs, params
    from formwright.space.zoo import CARDS

    cards = {name: CARDS.get(name) for name in CARDS.names()}
    return [
        {"name": name, "family": card.family, "params": params(card), "macs": macs(card)}
        for name, card in cards.items()
    ]


def _operations() -> list[dict[str, Any]]:
    from formwright.arch.ops import OPERATIONS
    from formwright.arch.primitives import BINARY, MEANINGS

    layers = [{"name": kind.TYPE, "use": "layer", "about": _first_line(kind)} for kind in OPERATIONS]
    primitives = [
        {"name": name, "use": "op-graph, " + ("two operands" if name in BINARY else "one operand"), "about": meaning}
        for name, meaning in MEANINGS.items()
    ]
    return layers + primitives


def _costs() -> list[dict[str, Any]]:
    from formwright.cost import COSTS

    conventions = [COSTS.get(name) for name in COSTS.names()]
    return [{"name": cost.name, "unit": cost.unit, "about": cost.about} for cost in conventions]


def _tasks() -> list[dict[str, Any]]:
    from formwright.tasks.catalogue import catalogue

    return [asdict(entry) for entry in catalogue()]


def _searchers() -> list[dict[str, Any]]:
    from formwright.search import SEARCHERS, option_names

    names = [name for name in SEARCHERS.names() if ":" not in name]  # `optuna:tpe` is `tpe`
    return [
        {"name": name, "options": ", ".join(option_names(name)), "about": _first_line(_class_of(SEARCHERS.get(name)))}
        for name in names
    ]


def _proxies() -> list[dict[str, Any]]:
    from formwright.evaluate.proxies import PROXIES

    return [{"name": name, "about": _first_line(PROXIES.get(name))} for name in PROXIES.names()]


def _recipes() -> list[dict[str, Any]]:
    from formwright.recipes import COMPRESSIONS, RECIPES

    found = {name: RECIPES.get(name).summary for name in RECIPES.names()}
    found |= {name: COMPRESSIONS.get(name) for name in COMPRESSIONS.names()}
    return [
        {"name": name, "job": one.job, "paper": one.paper, "needs": one.needs, "takes": one.takes, "about": one.about}
        for name, one in sorted(found.items())
    ]


def _class_of(maker: Any) -> Any:
    """Give what a searcher is made by: a class, or the class below a choice of its arguments."""
    return getattr(maker, "func", maker)


def _first_line(kind: Any) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


_LISTS: dict[Kind, Callable[[], list[dict[str, Any]]]] = {
    Kind.spaces: _spaces,
    Kind.cards: _cards,
    Kind.ops: _operations,
    Kind.costs: _costs,
    Kind.tasks: _tasks,
    Kind.searchers: _searchers,
    Kind.proxies: _proxies,
    Kind.recipes: _recipes,
}
