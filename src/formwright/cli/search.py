"""`formwright search`: find a design for a task."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.options import (
    AsJson,
    Data,
    DryRun,
    Force,
    Observe,
    OfficialDev,
    Patience,
    Rows,
    SetOption,
    SpendSteps,
    Task,
    Text,
)
from formwright.cli.run import run_and_print, with_settings
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.pipeline.pipeline import Pipeline
    from formwright.pipeline.task_choice import TaskChoice


def search(
    space: Annotated[
        str,
        typer.Argument(
            help="A space (`formwright list spaces`), or FILE.py:NAME for one of your own; a recipe names its own.",
            show_default=False,
        ),
    ] = "",
    *,
    task: Task,
    recipe: Annotated[
        str,
        typer.Option(
            help="A published method (`formwright list recipes`); explicit options override its settings.",
            rich_help_panel=panels.SEARCH,
        ),
    ] = "",
    data: Data = None,
    text: Text = "",
    label: LabelOption = "",
    task_kind: TaskKindOption = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    maximise: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric to maximise (default: the task's metric, or the first proxy); may be repeated.",
            rich_help_panel=panels.GOALS,
        ),
    ] = None,
    minimise: Annotated[
        list[str] | None,
        typer.Option(help="A metric or cost to minimise; may be repeated.", rich_help_panel=panels.GOALS),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help='A hard limit, such as "params<=5M" or "latency_ms<=5"; may be repeated.',
            rich_help_panel=panels.GOALS,
        ),
    ] = None,
    searcher: Annotated[
        str, typer.Option(help="Search method (`formwright list searchers`).", rich_help_panel=panels.SEARCH)
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the searcher, as NAME=VALUE; may be repeated.", rich_help_panel=panels.SEARCH),
    ] = None,
    evaluator: Annotated[
        str,
        typer.Option(
            help="How a design is scored (`formwright list evaluators`); options with --set evaluator.NAME=VALUE.",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = "",
    settings: SetOption = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of trials (default 30, unless another limit is given).",
            rich_help_panel=panels.STOP,
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Maximum number of seconds.", rich_help_panel=panels.STOP)
    ] = None,
    spend_steps: SpendSteps = None,
    patience: Patience = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Minimum improvement that resets --patience.", rich_help_panel=panels.STOP)
    ] = 0.0,
    max_failures: Annotated[
        int, typer.Option(min=0, help="Stop when more than N trials of a run have failed.", rich_help_panel=panels.STOP)
    ] = 20,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Training steps of each trial (default 300; fewer rows: 10 epochs, at least 100).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Rows in a batch (default 64).", rich_help_panel=panels.TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate (default 0.002).", rich_help_panel=panels.TRAINING)
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 128).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Dropout rate of trials and delivered models (default 0).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    keep: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of models to deliver: the best, or those of the Pareto front.",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = 1,
    final_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum training steps of each delivered model (default: three times --steps, or an epoch).",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = None,
    final_weights: Annotated[
        str,
        typer.Option(
            help="Initial weights of the delivered models: fresh or shared (default: as the evaluator leaves them).",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = "",
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline/--no-baseline",
            help="Also train a plain baseline design of at least the same size.",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = True,
    workers: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Worker processes on this machine, one thread each.", rich_help_panel=panels.RUNNING
        ),
    ] = 2,
    device: Annotated[
        str,
        typer.Option(
            help="Where models are trained, evaluated and measured: auto, cpu, cuda or mps.",
            rich_help_panel=panels.RUNNING,
        ),
    ] = "auto",
    storage: Annotated[
        str | None,
        typer.Option(
            help="Keep the log in this database: postgresql+psycopg://USER@HOST/DATABASE.",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Run the workers on the Ray cluster at this address; without an address, start one here.",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    ray_cpus: Annotated[
        float, typer.Option(min=0, help="CPUs reserved for each worker on Ray.", rich_help_panel=panels.RUNNING)
    ] = 1.0,
    ray_gpus: Annotated[
        float, typer.Option(min=0, help="GPUs reserved for each worker on Ray.", rich_help_panel=panels.RUNNING)
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Random seed.", rich_help_panel=panels.SEARCH)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the study (default: studies/SPACE-TASK, or studies/RECIPE-TASK).",
            rich_help_panel=panels.OUTPUT,
        ),
    ] = None,
    observe: Observe = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    A recipe sets the parts of a published method: space, searcher and its options, how designs are evaluated. The same
    command resumes a search that was interrupted.
    """
    from formwright.api import default_name
    from formwright.pipeline.run import RunOptions
    from formwright.pipeline.task_choice import TaskChoice

    chosen = TaskChoice(
        task, None if data is None else str(data), official_dev, columns_of(text), label, rows, task_kind
    )
    if tolerance and patience is None:
        raise IllegalInput("--tolerance is the minimum improvement that resets --patience; give a --patience too")
    pipeline = _composed(recipe, space, chosen, seed)
    stop = {"trials": trials, "seconds": seconds, "steps": spend_steps, "patience": patience}
    given: dict[str, Any] = {
        "search.objectives": _objectives(pipeline, chosen, evaluator, maximise or [], minimise or []),
        "search.limits": limit,
        "search.searcher": searcher or None,
        "search.evaluator": evaluator or None,
        "search.training.steps": steps,
        "search.training.batch": batch,
        "search.training.learning_rate": learning_rate,
        "search.training.length": length,
        "search.training.dropout": dropout,
        "search.training.device": device,
        "deliver.keep": keep,
        "deliver.steps": final_steps,
        "deliver.weights": final_weights or None,
        "deliver.baseline": baseline,
    }
    if any(value is not None for value in stop.values()):
        given["search.stop"] = stop | {"failures": max_failures, "tolerance": tolerance}
    else:
        given["search.stop.failures"] = max_failures
    given |= {f"search.searcher.{name}": value for name, value in _options(option or []).items()}
    run_and_print(
        with_settings(pipeline, given, settings),
        out or Path("studies") / default_name(recipe or space, task),
        RunOptions(workers, ray, ray_cpus, ray_gpus),
        storage,
        observe=observe,
        as_json=as_json,
        dry_run=dry_run,
        force=force,
    )


def _composed(recipe: str, space: str, task: "TaskChoice", seed: int) -> "Pipeline":
    """Compose the pipeline of a recipe, or of a plain search; name the other command for those that compress."""
    from formwright.recipes import RECIPES

    if not space and not recipe:
        raise IllegalInput("name a space (`formwright list spaces`), or a --recipe (`formwright list recipes`)")
    found = RECIPES.get(recipe or "plain")
    if found.command != "search":
        raise IllegalInput(f"{recipe} is run by another command: `formwright {found.command} --recipe {recipe}`")
    return found(task, **({"space": space} if space else {}), seed=seed)


def _objectives(
    pipeline: "Pipeline", task: "TaskChoice", evaluator: str, maximise: list[str], minimise: list[str]
) -> list[str] | None:
    """List the goals; the task's own comes first where nothing else is to be raised."""
    from formwright.pipeline.evaluators import EVALUATORS, TrainFully
    from formwright.pipeline.search import Search, own_goal

    twice = {name for name in (*maximise, *minimise) if (*maximise, *minimise).count(name) > 1}
    if twice:
        raise IllegalInput(f"{twice.pop()!r} is named as an objective twice")
    if not maximise and not minimise:
        return None
    goals = [f"{name}:max" for name in maximise] + [f"{name}:min" for name in minimise]
    part = EVALUATORS.get(evaluator)() if evaluator else pipeline.of_kind(Search)[0].evaluator or TrainFully()
    own = own_goal(part, task.load())
    if not maximise and own.partition(":")[0] not in minimise:
        goals.insert(0, own)
    return goals


def _options(texts: list[str]) -> dict[str, Any]:
    """Read the settings of the searcher."""
    from formwright.pipeline.files import value_of

    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise IllegalInput(f"--option is NAME=VALUE, not {text!r}")
        options[name.strip().replace("-", "_")] = value_of(value)
    return options
