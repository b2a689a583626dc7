"""Pipelines as files of the user's own, in YAML or JSON, and recipes composed from plain values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from formwright.core.errors import Fault, IllegalDesign, IllegalInput
from formwright.core.files import read_regular
from formwright.core.options import PartReader
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice


def compose(name: str, options: Mapping[str, Any]) -> Pipeline:
    """Compose the pipeline of a recipe; a task is its name, or an object with the fields of `TaskChoice`."""
    from importlib import import_module

    recipes = import_module("formwright.recipes").RECIPES
    given = dict(options)
    if "task" in given:
        given["task"] = task_choice(given["task"])
    try:
        made = recipes.get(name)(**given)
    except TypeError as error:
        raise IllegalInput(f"the recipe {name} cannot be composed: {error}") from None
    assert isinstance(made, Pipeline)
    return made


def task_choice(given: Any) -> TaskChoice:
    if isinstance(given, TaskChoice):
        return given
    if isinstance(given, str):
        return TaskChoice(given)
    reader = PartReader()
    found: TaskChoice = reader.read(TaskChoice, given, "task")
    return reader.finished(found, "task")


_LARGEST = 1 << 22  # bytes


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Read 1e-5 as a number; YAML 1.1, which the library implements, wants 1.0e-5. Refuse a key that occurs twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and names.count(key.value) > 1:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_pipeline_file(path: Path) -> Pipeline:
    """Read a pipeline: its stages, or a recipe by name with its options; every fault is reported with the file."""
    data = _read(path)
    if not isinstance(data, dict):
        raise IllegalInput(f"{path} holds no pipeline: write `stages:` or `recipe:` (docs/pipelines.md)")
    try:
        return _composed(data) if "stages" not in data else Pipeline.from_json(data)
    except IllegalDesign as error:
        raise IllegalDesign(error.faults, what=f"pipeline in {path}") from None


def _composed(data: dict[str, Any]) -> Pipeline:
    """Compose the pipeline of a recipe; `set` holds further options by their paths."""
    if "recipe" not in data:
        raise IllegalDesign([Fault("the whole", "needs `stages`, or a `recipe` and its options")], what="pipeline")
    options = {str(key).replace("-", "_"): value for key, value in data.items() if key not in ("recipe", "set")}
    settings = data.get("set") or {}
    if not isinstance(settings, dict):
        raise IllegalDesign([Fault("set", "must be an object of options by their paths")], what="pipeline")
    made = compose(str(data["recipe"]), options)
    return made.with_options([(str(path).replace("-", "_").split("."), value) for path, value in settings.items()])


def _read(path: Path) -> Any:
    try:
        return yaml.load(read_regular(path, _LARGEST), _Loader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        detail = error.strerror if isinstance(error, OSError) and error.strerror else str(error).replace("\n", " ")
        raise IllegalInput(f"cannot read {path}: {detail}") from None


def read_options(text: str, what: str) -> dict[str, Any]:
    """Read `OPTION=VALUE,OPTION=VALUE` of the command line; `what` says where it stands."""
    found = {}
    for setting in filter(None, text.split(",")):
        name, equals, value = setting.partition("=")
        if not equals:
            raise IllegalInput(f"expected {what}OPTION=VALUE,OPTION=VALUE, not {what}{text}")
        found[name.strip().replace("-", "_")] = value_of(value)
    return found


def value_of(text: str) -> Any:
    """Read the value of an option on the command line as YAML does: numbers, true, lists; else as text."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError:
        return text
