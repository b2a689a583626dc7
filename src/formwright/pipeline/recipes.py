"""Compose the pipeline of a recipe from plain values, as files and the command line give them."""

from collections.abc import Mapping
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.options import Reader
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
    """Read the choice of a task."""
    if isinstance(given, TaskChoice):
        return given
    if isinstance(given, str):
        return TaskChoice(given)
    reader = Reader()
    found: TaskChoice = reader.read(TaskChoice, given, "task")
    return reader.finished(found, "task")
