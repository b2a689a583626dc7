"""What a recipe is: a function that composes a pipeline, and what lists say of it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.core.options import PartReader
from formwright.pipeline.files import value_of
from formwright.pipeline.pipeline import Pipeline

_PLAIN = {int, float, bool, str, type(None)}
# what options mean that several recipes have
_MEANINGS = {
    "task": "the task: its name, and where its rows are",
    "model": "pretrained model: a folder, or a name on the hub",
    "space": "name of a space, FILE.py:NAME, or a stage that makes it",
    "start": "model whose weights the super-network starts with: a folder, a name on the hub, or a stage",
    "targets": "maximum costs of the delivered models, such as macs=50%",
    "limits": "hard limits of a design, such as params<=5M",
    "latency": "target latency in milliseconds for one row; only designs at 0.85 to 1.1 times the target are evaluated",
    "order": "how heads and channels are scored; smaller models keep those with the highest scores",
    "steps": "training steps of the super-network",
    "trials": "maximum number of trials of the search",
    "finetune": "training steps of delivered models",
    "training": "how models are trained: options of the stages' own trainings",
    "seed": "random seed",
}


@dataclass(frozen=True)
class Recipe:
    """A function that returns a pipeline, with what a list of methods says of it.

    `command` is the one of the command line that runs it, `needs` what it reads, and `takes` the time at the default
    budget on two cores, as far as it was measured. `meanings` says what its own options mean, by name.
    """

    compose: Callable[..., Pipeline]
    name: str
    about: str
    paper: str = ""
    command: str = "search"
    needs: str = ""
    takes: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **options: Any) -> Pipeline:
        """Compose the pipeline; refuse an option that the recipe does not have."""
        known = self.options
        if unknown := [name for name in options if name not in known]:
            hint = nearest_hint(unknown[0], known)
            wrong, right = ", ".join(unknown), ", ".join(known)
            raise IllegalInput(f"the recipe {self.name} has no option {wrong}.{hint} It has: {right}.")
        parameters = list(inspect.signature(self.compose).parameters.values())[len(arguments) :]
        missing = [one.name for one in parameters if one.default is one.empty and one.name not in options]
        if missing:
            raise IllegalInput(f"the recipe {self.name} needs {' and '.join(missing)}")
        made = self.compose(*arguments, **self.typed(options))
        return Pipeline(*made.stages, recipe=self.name)

    def typed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Read values that were written as text, and refuse those that an option cannot have."""
        reader, typed = PartReader(), dict(options)
        try:
            hints = get_type_hints(self.compose)
        except NameError:  # a package that imports names of its hints for type checkers only
            hints = {}
        for name, value in options.items():
            hint = hints.get(name)
            usual = inspect.signature(self.compose).parameters[name].default
            if get_origin(hint) in (tuple, Sequence) and get_args(hint)[0] in _PLAIN:
                typed[name] = _listed(reader, get_args(hint)[0], value, name)
            elif isinstance(value, Mapping) and is_dataclass(usual):
                found = reader.read(hint, value, name)
                given = {field.name: getattr(found, field.name, None) for field in fields(usual) if field.name in value}
                typed[name] = replace(usual, **given)  # type: ignore[type-var]
            elif get_origin(hint) is Literal or (
                isinstance(value, str | int | float | list | dict) and set(get_args(hint) or (hint,)) <= _PLAIN
            ):
                typed[name] = reader.read(hint, value, name)
        return reader.finished(typed, f"options of the recipe {self.name}")

    @property
    def options(self) -> list[str]:
        return list(inspect.signature(self.compose).parameters)

    def meaning(self, option: str) -> str:
        """Say what an option means; empty where the recipe does not."""
        return self.meanings.get(option, _MEANINGS.get(option, ""))


def _listed(reader: PartReader, kind: type, value: Any, name: str) -> Any:
    """Read a list; one value is a list of one, and numbers may be written as a text with commas between them."""
    if isinstance(value, str) and kind is not str:
        value = [value_of(text) for text in value.split(",")]
    if not isinstance(value, list | tuple):
        value = (value,)
    return tuple(reader.read(kind, one, name) for one in value)


def recipe(name: str, about: str, **facts: Any) -> Callable[[Callable[..., Pipeline]], Recipe]:
    """Make a recipe of a function, by a name and a line about it; `facts` are further fields of `Recipe`."""

    def decorate(compose: Callable[..., Pipeline]) -> Recipe:
        return Recipe(compose, name, about, **facts)

    return decorate
