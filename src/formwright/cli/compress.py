"""`formwright compress`: from a pretrained encoder to smaller models that load."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.options import AsJson, Data, Device, DryRun, Force, Observe, OfficialDev, Rows, SetOption
from formwright.cli.output import print_json
from formwright.cli.run import run_and_print, with_settings
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of
from formwright.core.errors import IllegalInput, Unsuccessful

if TYPE_CHECKING:
    from formwright.pipeline.pipeline import Pipeline
    from formwright.recipes.recipe import Recipe

_TRAINING = ("batch", "length", "learning_rate", "threads", "device")


def compress(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's folder, or its name on the hub (MiniLM of the extra `demo`).", show_default=False
        ),
    ] = "",
    *,
    recipe: Annotated[
        str,
        typer.Option(
            help="eftnas: smaller models for one task. nas-bert: encoders of several sizes for any task. "
            "`formwright list recipes` lists all.",
            rich_help_panel=panels.GOALS,
        ),
    ] = "eftnas",
    task: Annotated[
        str,
        typer.Option(
            help="A task (`formwright list tasks`), or a CSV, TSV or JSON file; required by eftnas.",
            rich_help_panel=panels.DATA,
        ),
    ] = "",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help='Maximum cost of a delivered model, such as "macs<=50%", latency_ms=8 or params=10M; may be repeated '
            "(default: macs=75%, 50%, 35% and 25%).",
            rich_help_panel=panels.GOALS,
        ),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            help="With nas-bert: maximum parameters (and latency) of each model, such as 5M,10M@8ms.",
            rich_help_panel=panels.GOALS,
        ),
    ] = "",
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Plan all stages to take about this many hours on this machine.",
            rich_help_panel=panels.GOALS,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Sub-networks that the search evaluates (default 200).", rich_help_panel=panels.STOP),
    ] = None,
    data: Data = None,
    text: Annotated[
        str,
        typer.Option(
            help="Text columns of your own file, separated by commas. With nas-bert: the training text, a file or "
            "`wikitext` with --data (default: the documentation of Python).",
            rich_help_panel=panels.DATA,
        ),
    ] = "",
    label: LabelOption = "",
    task_kind: TaskKindOption = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Rows in a batch (default 32).", rich_help_panel=panels.TRAINING)
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 256; 64 for "
            "nas-bert).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak learning rate of the teacher (default 0.00005; higher where --hours leaves few steps).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    settings: SetOption = None,
    accept_weak_teacher: Annotated[
        bool,
        typer.Option(
            "--accept-weak-teacher",
            help="Continue with a teacher that is hardly better than always giving the most common answer.",
            rich_help_panel=panels.RUNNING,
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Worker processes on this machine, one thread each (default 2, or as in the last run).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Threads of a training that is done alone (default: the number of CPUs).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    device: Device = "auto",
    save_every: Annotated[
        int, typer.Option(min=1, help="Training steps between checkpoints.", rich_help_panel=panels.TRAINING)
    ] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Random seed.", rich_help_panel=panels.TRAINING)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run (default: compressed/MODEL-TASK).", rich_help_panel=panels.OUTPUT),
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
    observe: Observe = None,
    as_json: AsJson = False,
) -> None:
    """Compress a pretrained encoder for a task: fine-tune it, and deliver the best smaller models inside it.

    With --recipe nas-bert no task is needed: it trains chains of operations block by block, and delivers encoders of
    several sizes that are fine-tuned later. Every other option of a recipe or a stage is set with --set, such as
    teacher.epochs=5, super-network.epochs=10 or order=l1 (`formwright list recipes`, `formwright list stages`).

    Ctrl-C saves; run the same command again, or `formwright resume DIR`. Finished stages are skipped.
    """
    from formwright.api import default_name
    from formwright.pipeline.fine_tune import WeakTeacher
    from formwright.pipeline.run import RunOptions
    from formwright.pipeline.run_folder import RUN, Record
    from formwright.recipes import RECIPES

    found = RECIPES.get(recipe)
    if found.command != "compress":
        raise IllegalInput(f"{recipe} is run by another command: `formwright {found.command} --recipe {recipe}`")
    source = {"data": None if data is None else str(data), "text": text or None, "rows": rows}
    labels = {"label": label or None, "kind": task_kind or None, "official_dev": official_dev or None}
    trained = {"batch": batch, "length": length, "learning_rate": learning_rate, "threads": threads, "device": device}
    named = {"model": model, "targets": target, "sizes": sizes or None, "trials": trials, "seed": seed}
    given = _with_task(found, task, source, labels) | _with_training(found, trained) | named
    pipeline = _composed(found, given, settings or [])
    if accept_weak_teacher:
        pipeline = with_settings(pipeline, {"teacher.accept_weak": True}, None)
    where = out or Path("compressed") / default_name(Path(model).name or "MiniLM", task or "sizes")
    kept = Record.read(where).options.workers if (where / RUN).is_file() and not force else RunOptions.workers
    options = RunOptions(workers or kept, save_every=save_every, hours=hours)
    try:
        run_and_print(pipeline, where, options, observe=observe, as_json=as_json, dry_run=dry_run, force=force)
    except WeakTeacher as error:
        if as_json:
            print_json({"models": [], "weak_teacher": asdict(error.weakness)})
        raise Unsuccessful(
            f"{error}. On the command line these are --set teacher.epochs=N, --hours, --learning-rate, --out, --force "
            "and --accept-weak-teacher"
        ) from None


def _with_task(recipe: "Recipe", name: str, source: Mapping[str, Any], labels: Mapping[str, Any]) -> dict[str, Any]:
    """Give the task of a recipe that has one, or else the text that it reads."""
    from formwright.pipeline.task_choice import TaskChoice

    said = {key: value for key, value in labels.items() if value is not None}
    if "task" not in recipe.options:
        return {**source, **({"task": name} if name else {}), **said}
    if not name:
        raise IllegalInput("say what the models are for with --task; `formwright list tasks` lists tasks")
    return {
        "task": TaskChoice(name, source["data"], text=columns_of(source["text"] or ""), rows=source["rows"], **said)
    }


def _with_training(recipe: "Recipe", given: Mapping[str, Any]) -> dict[str, Any]:
    """Give the training of a recipe that has one as a whole, or else its options one by one."""
    said = {name: value for name, value in given.items() if value is not None}
    if "training" not in recipe.options:
        return said
    usual = inspect.signature(recipe.compose).parameters["training"].default
    return {"training": replace(usual, **said)}


def _composed(recipe: "Recipe", given: Mapping[str, Any], settings: list[str]) -> "Pipeline":
    """Compose the pipeline; `--set NAME=VALUE` sets an option of the recipe, with a dot one of a stage."""
    from formwright.core.options import read_set
    from formwright.pipeline.files import value_of

    own = {path[0]: value for path, value in (read_set(text, value_of) for text in settings) if len(path) == 1}
    own = {name: value for name, value in own.items() if name in recipe.options}
    said = {name: value for name, value in given.items() if value not in (None, "")} | own
    foreign = sorted(name for name in said if name not in recipe.options)
    if foreign:
        flags = ", ".join(f"--{name.replace('_', '-')}" if name != "targets" else "--target" for name in foreign)
        raise IllegalInput(f"{flags}: the recipe {recipe.name} has no such option; it has {', '.join(recipe.options)}")
    rest = [text for text in settings if read_set(text, str)[0][0] not in own]
    return with_settings(recipe(**said), {}, rest)
