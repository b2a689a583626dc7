"""Compose the pipeline of a search, a compression or a training from what the user gave, in Python or by flags.

Names are those of the flags: `spend_steps` is `--spend-steps`. What is None was not given. `settings` are options by
their paths, such as `(["searcher", "population"], 40)`.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.codec import Json
from formwright.core.errors import Fault, IllegalDesign, IllegalInput, UnknownName
from formwright.core.options import Stage, options_of
from formwright.pipeline.designs import find_space
from formwright.pipeline.evaluators import TrainFully
from formwright.pipeline.files import read_options
from formwright.pipeline.model_training import Distillation, WordPretraining
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import RunOptions
from formwright.pipeline.search import Search, own_goal
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_model import train_pipeline
from formwright.recipes import RECIPES, Recipe
from formwright.search.searchers import SearcherPart, searcher
from formwright.tasks.frame_options import frame_options

if TYPE_CHECKING:
    from formwright.arch.card import Card

Settings = Sequence[tuple[Sequence[str], Json]]

_TRAINING = ("batch", "length", "learning_rate", "threads", "device")
_TRAINED = ("dropout", *_TRAINING)  # options of every training of a search: of shared weights too
_PATHS = {
    "steps": "search.training.steps",
    "limits": "search.limits",
    "keep": "deliver.keep",
    "final_steps": "deliver.steps",
    "final_weights": "deliver.weights",
    "baseline": "deliver.baseline",
}
_ENDS = {"trials": "trials", "seconds": "seconds", "spend_steps": "steps", "patience": "patience"}  # fields of `Stop`
_STOP = {**_ENDS, "max_failures": "failures", "tolerance": "tolerance"}
# where the rows of a task are
TASK_SOURCE = ("data", "text", "label", "rows", "task_kind", "series", "official_dev", "frames")
_PARTS, _GOALS = ("searcher", "evaluator"), ("objectives", "maximise", "minimise")
SEARCH_OPTIONS = (*_GOALS, *_PARTS, *_STOP, *_PATHS, *_TRAINED)


def choose_task(
    name: str | Path,
    *,
    data: str | Path | None = None,
    text: str | Iterable[str] = (),
    task_kind: str = "",
    frames: str | Mapping[str, Any] | None = None,
    **others: Any,
) -> TaskChoice:
    """Choose a task by its name or file; `text` are columns, or their names separated by commas.

    `frames` are options of `FrameOptions`, as a mapping or as text (`window_ms=32,hop_ms=16`); `others` are further
    fields of `TaskChoice`: label, rows, series, official_dev.
    """
    columns = tuple(part.strip() for one in as_tuple(text) for part in one.split(",") if part.strip())
    folder = None if data is None else str(data)
    wanted = frame_options(read_options(frames, "--frames ") if isinstance(frames, str) else frames) if frames else None
    return TaskChoice(str(name), data=folder, text=columns, kind=task_kind, frames=wanted, **others)


def compose_search(
    space: Any, task: str | TaskChoice, *, recipe: str = "", seed: int = 0, settings: Settings = (), **flags: Any
) -> Pipeline:
    """Compose a search: a recipe, or a plain search of a space, and what was given of `SEARCH_OPTIONS`.

    What else the recipe has, as an argument or as a setting without a dot, is an option of the recipe; `steps` too,
    where it has them: those of its super-network. What is said of trainings (`batch`, `length`, ...) holds for all
    stages that train. Other arguments go to `choose_task`.
    """
    if not space and recipe in ("", "plain"):
        raise IllegalInput(
            "name a space, such as flexibert-nano (`formwright list spaces`), or a recipe (`formwright list recipes`)"
        )
    method = _recipe(recipe or "plain", "search")
    flags = _given(flags)
    task = _chosen_task(task, flags)
    of_recipe = [name for name in method.options if name == "steps" or name not in SEARCH_OPTIONS]
    own = {name: flags.pop(name) for name in of_recipe if name in flags}
    if unknown := [name for name in flags if name not in SEARCH_OPTIONS]:
        raise UnknownName("option of a search", unknown[0], [*SEARCH_OPTIONS, "recipe", "seed", "settings"])
    if "patience" not in flags and flags.get("tolerance"):
        raise IllegalInput("tolerance is the minimum improvement that resets patience: give patience too")
    own |= {path[0]: value for path, value in settings if len(path) == 1 and path[0] in method.options}
    settings = [one for one in settings if one[0][0] not in own]
    if "limits" in method.options and "limits" in flags:  # which a recipe may add to those of its own
        own["limits"] = (*as_tuple(own.get("limits")), *as_tuple(flags.pop("limits")))
    pipeline = method(task, **({"space": space} if space else {}), **{"seed": seed, **own})
    stage = pipeline.of_kind(Search)[0]
    parts = {name: flags[name] for name in _PARTS if name in flags and not isinstance(flags[name], str)}
    if "searcher" in parts:
        parts["searcher"] = chosen_searcher(parts["searcher"])
    stop = {field: flags[name] for name, field in _STOP.items() if name in flags}
    if flags.keys() & _ENDS.keys():  # which replace those of the recipe
        stop = dict.fromkeys(_ENDS.values()) | stop
    stage = replace(stage, **parts, stop=replace(stage.stop, **stop))
    pipeline = pipeline.changed({pipeline.name_of(pipeline.of_kind(Search)[0]): stage})
    named = {f"search.{name}": flags[name] for name in _PARTS if isinstance(flags.get(name), str)}
    named |= {path: flags[name] for name, path in _PATHS.items() if name in flags} | _trained(pipeline, flags)
    pipeline = with_settings(pipeline, paths(named))
    goals = _objectives(pipeline.of_kind(Search)[0], task, *(as_tuple(flags.get(name)) for name in _GOALS))
    return with_settings(pipeline, [*paths({"search.objectives": goals} if goals else {}), *settings])


def _trained(pipeline: Pipeline, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Say by paths how all stages train: designs are judged as the weights that they share were trained."""
    given, found = {name: flags[name] for name in _TRAINED if name in flags}, dict[str, Any]()
    for name, stage in pipeline.named.items():
        if hasattr(stage, "training"):
            found |= {f"{name}.training.{option}": value for option, value in given.items()}
        if "learning_rate" in given and getattr(stage, "learning_rate", None) is not None:  # of its own, by the recipe
            found[f"{name}.learning_rate"] = given["learning_rate"]
        if "length" in given and "length" in (one.name for one in options_of(type(stage))):  # it measures such rows
            found[f"{name}.length"] = given["length"]
    return found


def compose_compression(
    model: str | Path = "",
    task: str | TaskChoice | None = None,
    *,
    recipe: str = "eftnas",
    settings: Settings = (),
    accept_weak_teacher: bool = False,
    **flags: Any,
) -> Pipeline:
    """Compose a compression by a recipe, some of whose options were given; a setting without a dot is one of them.

    What says where the rows of a task are (`choose_task`) goes to the recipe itself where that needs no task.
    """
    method = _recipe(recipe, "compress")
    own = {path[0]: value for path, value in settings if len(path) == 1 and path[0] in method.options}
    given = {"model": str(model), **_given(flags), **own}
    if "targets" in given:
        given["targets"] = as_tuple(given["targets"])
    if "task" in method.options:
        if not task:
            raise IllegalInput(f"the recipe {recipe} needs a task: a name (`formwright list tasks`) or a file")
        given["task"] = _chosen_task(task, given)
    elif task:
        raise IllegalInput(f"the recipe {recipe} compresses for any task: leave out the task")
    if "training" in method.options:
        usual = inspect.signature(method.compose).parameters["training"].default
        usual = method.typed({"training": given.get("training", usual)})["training"]
        given["training"] = replace(usual, **{name: given.pop(name) for name in _TRAINING if name in given})
    weak = paths({"teacher.accept_weak": True} if accept_weak_teacher else {})
    return with_settings(method(**given), [*weak, *(one for one in settings if one[0][0] not in own)])


def compose_training(
    source: "str | Path | Card",
    task: str | TaskChoice,
    *,
    pretrain: str | None = None,
    pretrain_steps: int | None = None,
    distil_from: str | Path | None = None,
    settings: Settings = (),
    **flags: Any,
) -> Pipeline:
    """Compose the training of a card or a model; what else is given goes to `choose_task` and `train_pipeline`."""
    if pretrain is None and pretrain_steps is not None:
        raise IllegalInput("pretrain_steps is part of pretraining: say on which text with pretrain")
    if pretrain is not None:
        flags["pretraining"] = WordPretraining(pretrain, pretrain_steps or WordPretraining.steps)
    if distil_from is not None:
        flags["distillation"] = Distillation(str(distil_from))
    given = str(source) if isinstance(source, Path) else source
    chosen = _chosen_task(task, flags)
    return with_settings(train_pipeline(given, chosen, **flags), settings)


def chosen_searcher(given: Any) -> SearcherPart:
    """Choose a searcher by name or class, or take one with options."""
    return given if isinstance(given, SearcherPart) else searcher(given)


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Part options into those of a run, those that say where the rows of a task are, and all others."""
    of_run = {"display", "observers", "storage", "force", "command", *vars(RunOptions())}
    groups: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    for name, value in options.items():
        groups[0 if name in of_run else 1 if name in TASK_SOURCE else 2][name] = value
    return groups


def with_settings(pipeline: Pipeline, settings: Sequence[tuple[Sequence[str], Json]]) -> Pipeline:
    """Set options by their paths; those of a searcher that nobody named are options of the default one."""
    faults: list[Fault] = []
    of_searcher = [one for one in settings if "searcher" in one[0][:-1]]
    for group in ([one for one in settings if one not in of_searcher], of_searcher):
        if group is of_searcher and group:
            pipeline = pipeline.changed(_usual_searchers(pipeline))
        try:
            pipeline = pipeline.with_options(group)
        except IllegalDesign as error:
            faults += error.faults
    if faults:
        raise IllegalDesign(faults, what="settings")
    return pipeline


def _usual_searchers(pipeline: Pipeline) -> dict[str, Stage]:
    return {
        name: replace(stage, searcher=stage.usual_searcher(find_space(stage.space)))
        for name, stage in pipeline.named.items()
        if isinstance(stage, Search) and stage.searcher is None and not isinstance(stage.space, Stage)
    }


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


def as_tuple(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Give a list of texts, of which one may stand alone."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None and value not in ("", (), [])}


def _chosen_task(task: str | TaskChoice, flags: dict[str, Any]) -> TaskChoice:
    """Choose a task by what was given of its rows, which is taken out of `flags`."""
    source = {name: flags.pop(name) for name in TASK_SOURCE if name in flags}
    return task if isinstance(task, TaskChoice) else choose_task(task, **source)


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
    """List the goals that were given; the task's own comes first where nothing else is to be raised."""
    named = (*maximise, *minimise)
    if twice := [name for name in named if named.count(name) > 1]:
        raise IllegalInput(f"{twice[0]!r} is named as an objective twice")
    goals = [*objectives, *(f"{name}:max" for name in maximise), *(f"{name}:min" for name in minimise)]
    if minimise and not maximise and not objectives:
        own = own_goal(search.evaluator or TrainFully(), task.load())
        goals = goals if own.partition(":")[0] in minimise else [own, *goals]
    return goals
