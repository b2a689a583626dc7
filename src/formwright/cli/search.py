"""`formwright search`: find a design for a task."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from formwright.cli import panels
from formwright.cli.options import AsJson, Data, OfficialDev, Patience, Rows, SpendSteps, Task, Text
from formwright.cli.output import note, report_cut
from formwright.cli.program import command_line
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of, print_warnings
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.recipes import Recipe

T = TypeVar("T")


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
            help="How a design is scored: full, staged, inherited, pretrained, bi-branch or proxy.",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = "",
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="A proxy of --evaluator proxy (`formwright list proxies`); may be repeated.",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = None,
    pretrain_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Pretraining steps of --evaluator pretrained or bi-branch (default 300).",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = None,
    pretrain_text: Annotated[
        str,
        typer.Option(help="Pretraining text: task (the training rows) or pydoc.", rich_help_panel=panels.EVALUATION),
    ] = "",
    least_overlap: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Skip pretraining where a trained design shares this share of the layers (default 0.8).",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = None,
    from_scratch: Annotated[
        bool,
        typer.Option(
            "--from-scratch",
            help="With --evaluator bi-branch, train every design from fresh weights.",
            rich_help_panel=panels.EVALUATION,
        ),
    ] = False,
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
            help="Initial weights of the delivered models: fresh, or store (shared by --evaluator bi-branch).",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = "fresh",
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
    as_json: AsJson = False,
) -> None:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    A recipe sets the parts of a published method: space, searcher and its options, how designs are evaluated.
    """
    from formwright.cli.study_run import Wishes, conduct
    from formwright.search.make import trains_in_slices, usual_searcher
    from formwright.study.assemble import (
        DEFAULT_PROXY,
        find_task,
        refuse_faulty,
        rows_cut,
        with_readable_length,
        with_usual_length,
        with_whole_paths,
    )
    from formwright.study.config import Config, TaskChoice
    from formwright.study.place import create
    from formwright.study.run_record import RunOptions
    from formwright.study.spaces import find_space
    from formwright.study.stop import Stop
    from formwright.train.device import choose_device, device_name
    from formwright.train.recipe import usual_last_steps, usual_steps

    basis = _basis(recipe)
    space = space or basis.space
    if not space:
        raise IllegalInput("name a space (`formwright list spaces`), or a --recipe (`formwright list recipes`)")
    evaluator = evaluator or basis.evaluator
    pretraining = {"steps": pretrain_steps, "text": pretrain_text or None}
    _refuse_misplaced(evaluator, proxy or [], pretraining, least_overlap, from_scratch, final_weights)
    _refuse_idle_tolerance(tolerance, patience)
    if (trials, seconds, spend_steps, patience) == (None,) * 4:
        trials = basis.trials
    chosen = TaskChoice(
        task, None if data is None else str(data), official_dev, columns_of(text), label, rows, task_kind
    )
    found = find_task(chosen)
    print_warnings(found)
    own = f"{(proxy or [DEFAULT_PROXY])[0]}:max" if evaluator == "proxy" else _own_goal(found)
    objectives = _objectives(own, maximise or [], minimise or list(basis.minimise))
    name = searcher or basis.searcher or usual_searcher(find_space(space), len(objectives))
    length = length or basis.length
    training = _changed(basis.training, batch=batch, learning_rate=learning_rate, length=length, dropout=dropout)
    seen = len(found.search_view().train)
    # of a cluster, each worker has a device of its own
    where = device_name(device) if ray else choose_device(device).type
    training = replace(training, device=where, steps=steps or usual_steps(training.steps, seen, training.batch))
    config = Config(
        space,
        chosen,
        objectives,
        Stop(trials, seconds, spend_steps, patience, max_failures, tolerance),
        tuple(limit or basis.limits),
        name,
        basis.options_of(name, _options(option or [])),
        evaluator or ("staged" if trains_in_slices(name) else "full"),
        tuple(proxy or ()),
        training,
        keep,
        final_steps or usual_last_steps(3 * training.steps, seen, training.batch),
        seed,
        _changed(basis.pretraining, **pretraining, least_overlap=least_overlap, from_scratch=from_scratch or None),
        first=basis.first_of(space),
        final_weights=final_weights,
    )
    config = (with_usual_length if length is None else with_readable_length)(config, found)
    if length is not None and config.training.length < length:
        note(f"rows have at most {config.training.length} tokens, not {length}: the designs read no more")
    refuse_faulty(config)
    report_cut(rows_cut(config, found), is_default=length is None)
    config = with_whole_paths(config)
    folder = out or Path("studies") / _default_name(recipe or space, task)
    place = create(folder, config, storage)
    command = command_line(sys.argv[1:])
    conduct(place, Wishes(RunOptions(workers, ray, ray_cpus, ray_gpus, baseline), as_json, command))


def _refuse_idle_tolerance(tolerance: float, patience: int | None) -> None:
    if tolerance and patience is None:
        raise IllegalInput("--tolerance is the minimum improvement that resets --patience; give a --patience too")


def _basis(name: str | None) -> "Recipe":
    """Give the recipe of a name, or what a search has without one; name the other command for those that compress."""
    from formwright.recipes import COMPRESSIONS, RECIPES, Recipe

    if name in COMPRESSIONS.names():
        raise IllegalInput(f"{name} compresses a pretrained model: `formwright compress --recipe {name}`")
    return RECIPES.get(name) if name else Recipe()


def _refuse_misplaced(
    evaluator: str,
    proxy: list[str],
    pretraining: dict[str, Any],
    least_overlap: float | None,
    from_scratch: bool,
    final_weights: str,
) -> None:
    """Refuse options that the evaluator would not heed."""
    if proxy and evaluator != "proxy":
        raise IllegalInput(f"--proxy {proxy[0]} goes with --evaluator proxy")
    if evaluator not in ("pretrained", "bi-branch") and any(value is not None for value in pretraining.values()):
        raise IllegalInput("--pretrain-steps and --pretrain-text go with --evaluator pretrained or bi-branch")
    if evaluator != "pretrained" and least_overlap is not None:
        raise IllegalInput("--least-overlap goes with --evaluator pretrained")
    if evaluator != "bi-branch" and from_scratch:
        raise IllegalInput("--from-scratch goes with --evaluator bi-branch")
    if final_weights == "store" and (evaluator != "bi-branch" or from_scratch):
        raise IllegalInput("--final-weights store goes with --evaluator bi-branch, and without --from-scratch")


def _changed(parts: T, **given: Any) -> T:
    """Replace what is given."""
    return replace(parts, **{name: value for name, value in given.items() if value is not None})  # type: ignore[type-var]


def _default_name(space: str, task: str) -> str:
    """Name the folder of a study after its space and its task, of which a file is known by its stem."""
    name = Path(task).stem if Path(task).is_absolute() or Path(task).suffix else task
    return "-".join([Path(space.partition(":")[0]).stem, *Path(name).parts])


def _own_goal(task: Any) -> str:
    from formwright.tasks.metrics import metric

    return f"{task.metric}:{metric(task.metric).direction}"


def _objectives(default: str, maximise: list[str], minimise: list[str]) -> tuple[str, ...]:
    """List the goals; the default comes first where nothing is to be raised."""
    goals = [f"{name}:max" for name in maximise] + [f"{name}:min" for name in minimise]
    if not maximise and default.partition(":")[0] not in minimise:
        goals.insert(0, default)
    twice = {name for name in (*maximise, *minimise) if (*maximise, *minimise).count(name) > 1}
    if twice:
        raise IllegalInput(f"{twice.pop()!r} is named as an objective twice")
    return tuple(goals)


def _options(texts: list[str]) -> dict[str, Any]:
    import json

    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise IllegalInput(f"--option is NAME=VALUE, not {text!r}")
        try:
            options[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            options[name.strip().replace("-", "_")] = value
    return options
