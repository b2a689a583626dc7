"""`formwright list`: what can be named on the command line and in files, and which options it has."""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from formwright.cli.output import echo, large, print_entries, print_json
from formwright.core.errors import IllegalInput
from formwright.core.options import Option, Part, nested_options, type_words


class Kind(StrEnum):
    """What can be listed."""

    spaces = "spaces"
    cards = "cards"
    ops = "ops"
    costs = "costs"
    tasks = "tasks"
    searchers = "searchers"
    evaluators = "evaluators"
    proxies = "proxies"
    stages = "stages"
    rules = "rules"
    lessons = "lessons"
    recipes = "recipes"
    observers = "observers"


def list_names(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_choices=True)],
    options: Annotated[
        bool, typer.Option("--options", help="Show the options of each part, with types and defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List what can be named: search spaces, designs (cards), methods (recipes), tasks, and the parts of a pipeline.

    Parts are stages, searchers, evaluators, rules (which designs learn at a step of shared training) and lessons (what
    they learn from). Set an option with --set PART.OPTION=VALUE, in a YAML file, or in Python.
    """
    if options:
        _list_options(kind, as_json)
        return
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


def _list_options(kind: Kind, as_json: bool) -> None:
    if kind not in _REGISTRIES:
        raise IllegalInput(f"{kind} have no options; --options is for {', '.join(_REGISTRIES)}")
    found = _parts(kind)
    if as_json:
        entries = [
            {"name": name, "about": _first_line(part), "options": [asdict(one) for one in _options(part)]}
            for name, part in found.items()
        ]
        print_json({str(kind): entries})
        return
    for name, part in found.items():
        echo(f"{name}: {_first_line(part)}")
        if known := _options(part):
            rows = [(one.name, one.type, one.default, one.about) for one in known]
            print_entries(["option", "type", "default", "about"], rows)
        else:
            echo("no options\n")


def _options(part: Any) -> list[Option]:
    """List the options of a part: the fields of a dataclass, or the parameters of a function."""
    from formwright.search.make import GIVEN

    made = _class_of(part)
    if isinstance(made, type) and dataclasses.is_dataclass(made):
        return nested_options(made, () if issubclass(made, Part) else GIVEN)
    found = []
    for name, one in inspect.signature(getattr(part, "compose", made)).parameters.items():
        kind = "" if one.annotation is one.empty else type_words(one.annotation)
        default = "required" if one.default is one.empty else "null" if one.default is None else str(one.default)
        found.append(Option(name, kind, default))
    return found


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
    from formwright.tasks import catalogue

    return [asdict(entry) for entry in catalogue()]


def _recipes() -> list[dict[str, Any]]:
    from formwright.recipes import RECIPES

    names = ("name", "command", "paper", "needs", "takes", "about")
    return [{name: getattr(one, name) for name in names} for one in map(RECIPES.get, RECIPES.names())]


def _parts(kind: Kind) -> dict[str, Any]:
    """Give the parts of a kind by name."""
    module, _, attribute = _REGISTRIES[kind].partition(":")
    registry = getattr(import_module(module), attribute)
    return {name: registry.get(name) for name in registry.names() if ":" not in name}  # `optuna:tpe` is `tpe`


def _described(kind: Kind) -> list[dict[str, Any]]:
    return [
        {"name": name, "options": ", ".join(_names(part)), "about": _first_line(part)}
        for name, part in _parts(kind).items()
    ]


def _names(part: Any) -> list[str]:
    """List the options of a part without those within them."""
    return list(dict.fromkeys(one.name.partition(".")[0] for one in _options(part)))


def _proxies() -> list[dict[str, Any]]:
    from formwright.evaluate.proxies import PROXIES

    return [{"name": name, "about": _first_line(PROXIES.get(name))} for name in PROXIES.names()]


def _class_of(maker: Any) -> Any:
    """Give what a part is made by: a class, or the class below a choice of its arguments."""
    return getattr(maker, "func", maker)


def _first_line(part: Any) -> str:
    """Say what a part is: its own line about it, or the first line of its docstring."""
    if isinstance(about := getattr(part, "about", None), str):
        return about
    return (inspect.getdoc(_class_of(part)) or "").strip().partition("\n")[0]


_REGISTRIES = {
    Kind.searchers: "formwright.search:SEARCHERS",
    Kind.evaluators: "formwright.pipeline.evaluators:EVALUATORS",
    Kind.stages: "formwright.core.registries:STAGES",
    Kind.rules: "formwright.supernet.rules:RULES",
    Kind.lessons: "formwright.supernet.lessons:LESSONS",
    Kind.recipes: "formwright.recipes:RECIPES",
    Kind.observers: "formwright.pipeline.observers:OBSERVERS",
}
_LISTS: dict[Kind, Callable[[], list[dict[str, Any]]]] = {
    **{kind: partial(_described, kind) for kind in _REGISTRIES},
    Kind.spaces: _spaces,
    Kind.cards: _cards,
    Kind.ops: _operations,
    Kind.costs: _costs,
    Kind.tasks: _tasks,
    Kind.proxies: _proxies,
    Kind.recipes: _recipes,
}
