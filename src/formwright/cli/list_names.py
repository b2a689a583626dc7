"""`formwright list`: what can be named on the command line and in files, and which options it has."""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

from formwright.cli.options import argument, flag
from formwright.cli.output import echo, large, print_entries, print_json
from formwright.core.errors import IllegalInput
from formwright.core.options import OptionHelp, Part, options_of, type_words

Kind = StrEnum(
    "Kind",
    "spaces cards ops costs tasks kinds searchers evaluators predictors proxies stages rules lessons updates recipes "
    "observers",
)
_OPTIONS = "Show the options of each part, with types and defaults."


def list_names(
    kind: Annotated[Kind, argument("What to list.", show_choices=True)],
    options: Annotated[bool, flag(_OPTIONS, None, "--options")] = False,
    as_json: Annotated[bool, flag("Print one JSON object.", None, "--json")] = False,
) -> None:
    """List what can be named: search spaces, designs (cards), methods (recipes), tasks, kinds of data, and parts.

    Parts are stages, searchers, evaluators, rules (which designs learn at a step of shared training), lessons (what
    they learn from) and updates (how their gradients are joined). Set an option with --set PART.OPTION=VALUE, in a YAML
    file, or in Python.
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
    shown = [{name: large(one) if isinstance(one, int) else str(one) for name, one in row.items()} for row in entries]
    rows = [[row["name"], *(row[name] for name in columns)] for row in shown]
    print_entries(["name", *headings], rows)


def _list_options(kind: Kind, as_json: bool) -> None:
    if kind not in _REGISTRIES:
        raise IllegalInput(f"{kind} have no options; --options is for {', '.join(_REGISTRIES)}")
    found = _parts(_REGISTRIES[kind])
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


def _options(part: Any) -> list[OptionHelp]:
    """List the options of a part: the fields of a dataclass, or the parameters of a function."""
    from formwright.search.searchers import GIVEN

    made = _class_of(part)
    if isinstance(made, type) and dataclasses.is_dataclass(made):
        return options_of(made, () if issubclass(made, Part) else GIVEN)
    found, meaning = [], getattr(part, "meaning", lambda _: "")
    for name, one in inspect.signature(getattr(part, "compose", made)).parameters.items():
        kind = "" if one.annotation is one.empty else type_words(one.annotation)
        default = "required" if one.default is one.empty else "null" if one.default is None else str(one.default)
        found.append(OptionHelp(name, kind, default, meaning(name)))
    return found


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
    from formwright.arch.ops import all_operations
    from formwright.arch.primitives import BINARY, MEANINGS

    layers = [{"name": kind.TYPE, "use": "layer", "about": _first_line(kind)} for kind in all_operations().values()]
    primitives = [
        {"name": name, "use": "op-graph, " + ("two operands" if name in BINARY else "one operand"), "about": meaning}
        for name, meaning in MEANINGS.items()
    ]
    return layers + primitives


def _tasks() -> list[dict[str, Any]]:
    from formwright.tasks import catalogue

    return [asdict(entry) for entry in catalogue()]


def _parts(source: str) -> dict[str, Any]:
    """Give the entries of a registry, which is named by its module and name."""
    module, _, attribute = source.partition(":")
    registry = getattr(import_module(module), attribute)
    return {name: registry.get(name) for name in registry.names() if ":" not in name}  # `optuna:tpe` is `tpe`


def _columns(source: str, *names: str) -> list[dict[str, Any]]:
    """List the entries of a registry by some of their attributes."""
    return [{name: getattr(one, name) for name in names} for one in _parts(source).values()]


def _described(source: str) -> list[dict[str, Any]]:
    """List the parts of a registry with their options, without those within them."""
    found = []
    for name, part in _parts(source).items():
        names = dict.fromkeys(one.name.partition(".")[0] for one in _options(part))
        found.append({"name": name, "options": ", ".join(names), "about": _first_line(part)})
    return found


def _proxies() -> list[dict[str, Any]]:
    found = _parts("formwright.evaluate.proxies:PROXIES")
    return [{"name": name, "about": _first_line(proxy)} for name, proxy in found.items()]


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
    Kind.predictors: "formwright.search.predictors:PREDICTORS",
    Kind.stages: "formwright.core.options:STAGES",
    Kind.rules: "formwright.supernet.rules:RULES",
    Kind.lessons: "formwright.supernet.lessons:LESSONS",
    Kind.updates: "formwright.train.updates:UPDATES",
    Kind.recipes: "formwright.recipes:RECIPES",
    Kind.observers: "formwright.pipeline.observers:OBSERVERS",
}
_LISTS: dict[Kind, Callable[[], list[dict[str, Any]]]] = {
    **{kind: partial(_described, source) for kind, source in _REGISTRIES.items()},
    Kind.spaces: _spaces,
    Kind.cards: _cards,
    Kind.ops: _operations,
    Kind.costs: partial(_columns, "formwright.cost:COSTS", "name", "unit", "about"),
    Kind.tasks: _tasks,
    Kind.kinds: partial(_columns, "formwright.tasks.kind:KINDS", "name", "short", "reads", "head", "about"),
    Kind.proxies: _proxies,
    Kind.recipes: partial(_columns, _REGISTRIES[Kind.recipes], "name", "command", "paper", "needs", "takes", "about"),
}
