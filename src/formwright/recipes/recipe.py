"""What a recipe is: a function that composes a pipeline, and what lists say of it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin, get_type_hints

from formwright.core.errors import IllegalInput, nearest_hint
from formwright.core.options import PartReader
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
        made = self.compose(*arguments, **self._typed(options))
        return Pipeline(*made.stages, recipe=self.name)

    def _typed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse values that are not numbers where one is expected, and the like; one text is a list of one text."""
        reader, typed = PartReader(), dict(options)
        try:
            hints = get_type_hints(self.compose)
        except NameError:  # a package that imports names of its hints for type checkers only
            hints = {}
        for name, value in options.items():
            hint = hints.get(name)
            if get_origin(hint) in (tuple, Sequence) and isinstance(value, str):
                typed[name] = (value,)
            elif isinstance(value, str | int | float | list | dict) and set(get_args(hint) or (hint,)) <= _PLAIN:
                typed[name] = reader.read(hint, value, name)
        return reader.finished(typed, f"options of the recipe {self.name}")

    @property
    def options(self) -> list[str]:
        return list(inspect.signature(self.compose).parameters)

    def meaning(self, option: str) -> str:
        """Say what an option means; empty where the recipe does not."""
        return self.meanings.get(option, _MEANINGS.get(option, ""))


def recipe(name: str, about: str, **facts: Any) -> Callable[[Callable[..., Pipeline]], Recipe]:
    """Make a recipe of a function, by a name and a line about it; `facts` are further fields of `Recipe`."""

    def decorate(compose: Callable[..., Pipeline]) -> Recipe:
        return Recipe(compose, name, about, **facts)

    return decorate
