"""Compose the pipeline of a search, a compression or a training from what the user said, in Python or by flags.

Names are those of the flags: `spend_steps` is `--spend-steps`. What is None was not said. `settings` are options by
their paths, such as `(["searcher", "population"], 40)`.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.codec import Json
from formwright.core.errors import IllegalInput, UnknownName
from formwright.pipeline.evaluators import TrainFully
from formwright.pipeline.model_training import Distillation, WordPretraining
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search, own_goal, with_settings
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_model import train_pipeline
from formwright.recipes import RECIPES, Recipe
from formwright.search.searchers import SearcherPart, searcher

if TYPE_CHECKING:
    from formwright.arch.card import Card

Settings = Sequence[tuple[Sequence[str], Json]]

_TRAINING = ("batch", "length", "learning_rate", "threads", "device")
_PATHS = {
    **{name: f"search.training.{name}" for name in ("steps", "dropout", *_TRAINING)},
    "limits": "search.limits",
    "keep": "deliver.keep",
    "final_steps": "deliver.steps",
    "final_weights": "deliver.weights",
    "baseline": "deliver.baseline",
}
_ENDS = {"trials": "trials", "seconds": "seconds", "spend_steps": "steps", "patience": "patience"}  # fields of `Stop`
_STOP = {**_ENDS, "max_failures": "failures", "tolerance": "tolerance"}
TASK_SOURCE = ("data", "text", "label", "rows", "task_kind", "official_dev")  # where the rows of a task are
_PARTS, _GOALS = ("searcher", "evaluator"), ("objectives", "maximise", "minimise")
SEARCH_OPTIONS = (*_GOALS, *_PARTS, *_STOP, *_PATHS)


def choose_task(
    name: str | Path,
    *,
    data: str | Path | None = None,
    text: str | Iterable[str] = (),
    label: str = "",
    rows: int | None = None,
    task_kind: str = "",
    official_dev: bool = False,
) -> TaskChoice:
    """Choose a task by its name or file; `text` are columns, or their names separated by commas."""
    columns = tuple(part.strip() for one in listed(text) for part in one.split(",") if part.strip())
    return TaskChoice(str(name), None if data is None else str(data), official_dev, columns, label, rows, task_kind)


def compose_search(
    space: Any, task: TaskChoice, *, recipe: str = "", seed: int = 0, settings: Settings = (), **said: Any
) -> Pipeline:
    """Compose a search: a recipe, or a plain search of a space, and what was said of `SEARCH_OPTIONS`."""
    if not space and recipe in ("", "plain"):
        raise IllegalInput(
            "name a space, such as flexibert-nano (`formwright list spaces`), or a recipe (`formwright list recipes`)"
        )
    method = _recipe(recipe or "plain", "search")
    said = _said(said)
    if unknown := [name for name in said if name not in SEARCH_OPTIONS]:
        raise UnknownName("option of a search", unknown[0], [*SEARCH_OPTIONS, "recipe", "seed", "settings"])
    if "patience" not in said and said.get("tolerance"):
        raise IllegalInput("tolerance is the minimum improvement that resets patience: give patience too")
    pipeline = method(task, **({"space": space} if space else {}), seed=seed)
    stage = pipeline.of_kind(Search)[0]
    parts = {name: said[name] for name in _PARTS if name in said and not isinstance(said[name], str)}
    if "searcher" in parts:
        parts["searcher"] = chosen_searcher(parts["searcher"])
    stop = {field: said[name] for name, field in _STOP.items() if name in said}
    if said.keys() & _ENDS.keys():  # which replace those of the recipe
        stop = dict.fromkeys(_ENDS.values()) | stop
    stage = replace(stage, **parts, stop=replace(stage.stop, **stop))
    pipeline = pipeline.changed({pipeline.name_of(pipeline.of_kind(Search)[0]): stage})
    named = {f"search.{name}": said[name] for name in _PARTS if isinstance(said.get(name), str)}
    named |= {path: said[name] for name, path in _PATHS.items() if name in said}
    pipeline = with_settings(pipeline, paths(named))
    goals = _objectives(pipeline.of_kind(Search)[0], task, *(listed(said.get(name)) for name in _GOALS))
    return with_settings(pipeline, [*paths({"search.objectives": goals} if goals else {}), *settings])


def compose_compression(
    model: str | Path = "",
    task: str | TaskChoice | None = None,
    *,
    recipe: str = "eftnas",
    settings: Settings = (),
    accept_weak_teacher: bool = False,
    **said: Any,
) -> Pipeline:
    """Compose a compression by a recipe, of whose options some were said; a setting without a dot is one of them.

    What says where the rows of a task are (`choose_task`) goes to the recipe itself where that needs no task.
    """
    method = _recipe(recipe, "compress")
    own = {path[0]: value for path, value in settings if len(path) == 1 and path[0] in method.options}
    given = {"model": str(model), **_said(said), **own}
    if "targets" in given:
        given["targets"] = listed(given["targets"])
    if "task" in method.options:
        if not task:
            raise IllegalInput(f"the recipe {recipe} needs a task: a name (`formwright list tasks`) or a file")
        source = {name: given.pop(name) for name in TASK_SOURCE if name in given}
        given["task"] = task if isinstance(task, TaskChoice) else choose_task(task, **source)
    elif task:
        raise IllegalInput(f"the recipe {recipe} compresses for any task: leave out the task")
    if "training" in method.options:
        usual = inspect.signature(method.compose).parameters["training"].default
        given["training"] = replace(usual, **{name: given.pop(name) for name in _TRAINING if name in given})
    weak = paths({"teacher.accept_weak": True} if accept_weak_teacher else {})
    return with_settings(method(**given), [*weak, *(one for one in settings if one[0][0] not in own)])


def compose_training(
    source: "str | Path | Card",
    task: TaskChoice,
    *,
    pretrain: str | None = None,
    pretrain_steps: int | None = None,
    distil_from: str | Path | None = None,
    settings: Settings = (),
    **said: Any,
) -> Pipeline:
    """Compose the training of a card or a model; what else is said are options of `train_pipeline`."""
    if pretrain is None and pretrain_steps is not None:
        raise IllegalInput("pretrain_steps is part of pretraining: say on which text with pretrain")
    if pretrain is not None:
        said["pretraining"] = WordPretraining(pretrain, pretrain_steps or WordPretraining.steps)
    if distil_from is not None:
        said["distillation"] = Distillation(str(distil_from))
    given = str(source) if isinstance(source, Path) else source
    return with_settings(train_pipeline(given, task, **said), settings)


def chosen_searcher(given: Any) -> SearcherPart:
    """Choose a searcher by name or class, or take one with options."""
    return given if isinstance(given, SearcherPart) else searcher(given)


def default_folder(parent: str, name: Any, task: Any) -> Path:
    """Give the folder of a run that is called after its space, recipe or model and its task; a file by its stem."""
    of_task = str(task) if isinstance(task, str | Path) else getattr(task, "name", "data")
    of_task = Path(of_task).stem if Path(of_task).is_absolute() or Path(of_task).suffix else of_task
    first = name if isinstance(name, str) else getattr(name, "name", "space")
    words = [Path(first.partition(":")[0]).stem, *Path(of_task).parts]
    return Path(parent) / "-".join(word for word in words if word.strip("./\\"))


def paths(options: Mapping[str, Json]) -> list[tuple[list[str], Json]]:
    """Give options that are named by their paths, such as `searcher.population`, as settings."""
    if not isinstance(options, Mapping) or not all(isinstance(path, str) for path in options):
        raise IllegalInput(f"settings are a mapping such as {{'searcher.population': 40}}, not {options!r}")
    return [(path.replace("-", "_").split("."), _plain(value)) for path, value in options.items()]


def _plain(value: Any) -> Json:
    """Give a number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def listed(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Give a list of texts, of which one may stand alone."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None and value not in ("", (), [])}


def _recipe(name: str, command: str) -> Recipe:
    found = RECIPES.get(name)
    if found.command != command:
        raise IllegalInput(
            f"the recipe {name} is for `formwright {found.command} --recipe {name}`, in Python "
            f"fw.{found.command}(recipe={name!r})"
        )
    return found


def _objectives(
    search: Search, task: TaskChoice, objectives: Sequence[str], maximise: Sequence[str], minimise: Sequence[str]
) -> list[str]:
    """List the goals that were said; the task's own comes first where nothing else is to be raised."""
    named = (*maximise, *minimise)
    if twice := [name for name in named if named.count(name) > 1]:
        raise IllegalInput(f"{twice[0]!r} is named as an objective twice")
    goals = [*objectives, *(f"{name}:max" for name in maximise), *(f"{name}:min" for name in minimise)]
    if minimise and not maximise and not objectives:
        own = own_goal(search.evaluator or TrainFully(), task.load())
        goals = goals if own.partition(":")[0] in minimise else [own, *goals]
    return goals
