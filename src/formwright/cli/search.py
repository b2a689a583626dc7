"""`formwright search`: find a design for a task."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from formwright.cli.program import command_line
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
    task: Annotated[str, typer.Option(help="A task (`formwright list tasks`), or a CSV, TSV or JSON Lines file.")],
    recipe: Annotated[
        str, typer.Option(help="A published method (`formwright list recipes`); all it sets can be said otherwise.")
    ] = "",
    data: Annotated[Path | None, typer.Option(help="The folder with the files of a task that is not built in.")] = None,
    text: Annotated[str, typer.Option(help="Columns of your own file that hold the text, with commas.")] = "",
    label: Annotated[str, typer.Option(help="Column of your own file that holds the label.")] = "",
    official_dev: Annotated[
        bool, typer.Option("--official-dev", help="Validate on the whole official dev set, and keep no test rows.")
    ] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="Train on the first rows only.")] = None,
    maximise: Annotated[
        list[str] | None,
        typer.Option(help="A metric to raise (by default the task's own, or the first proxy); may be repeated."),
    ] = None,
    minimise: Annotated[list[str] | None, typer.Option(help="A metric or cost to lower; may be repeated.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help='A hard limit, such as "params<=1e5" or "latency_ms<=5"; may be repeated.')
    ] = None,
    searcher: Annotated[str, typer.Option(help="A search method (`formwright list searchers`).")] = "",
    option: Annotated[
        list[str] | None, typer.Option(help="A setting of the searcher, as NAME=VALUE; may be repeated.")
    ] = None,
    evaluator: Annotated[str, typer.Option(help="full, staged, inherited, pretrained, bi-branch or proxy.")] = "",
    proxy: Annotated[list[str] | None, typer.Option(help="A proxy of --evaluator proxy; may be repeated.")] = None,
    pretrain_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of --evaluator pretrained or bi-branch before a design is fine-tuned (300)."),
    ] = None,
    pretrain_text: Annotated[
        str, typer.Option(help="Text of those steps: task, that of the training rows, or pydoc.")
    ] = "",
    least_overlap: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of a design's layers that a trained one must have to spare it pretraining (0.8)."
        ),
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Let --evaluator bi-branch train every design from fresh weights.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many designs (30, if nothing else is).")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Stop after so many seconds.")] = None,
    spend_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many training steps in all.")] = None,
    patience: Annotated[int | None, typer.Option(min=1, help="Stop after so many trials without a better one.")] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="What --patience takes for no better: a goal that is bettered by no more.")
    ] = 0.0,
    max_failures: Annotated[
        int, typer.Option(min=0, help="Stop when more trials than this have failed, in one run.")
    ] = 20,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps of a design (300).")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows in a batch (64).")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Highest learning rate (0.002).")] = None,
    length: Annotated[int | None, typer.Option(min=8, help="Most tokens in a row (64).")] = None,
    dropout: Annotated[float | None, typer.Option(min=0, max=1, help="Dropout (0).")] = None,
    keep: Annotated[int, typer.Option(min=1, help="Deliver so many models: the best, or those of the front.")] = 1,
    final_steps: Annotated[
        int | None, typer.Option(min=1, help="Training steps of the delivered models (three times --steps).")
    ] = None,
    final_weights: Annotated[
        str,
        typer.Option(
            help="What these begin with: fresh weights, or the store that trials of --evaluator bi-branch shared."
        ),
    ] = "fresh",
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Also train a plain design of no smaller size.")
    ] = True,
    workers: Annotated[int, typer.Option(min=1, max=1000, help="Processes on this machine, one thread each.")] = 2,
    storage: Annotated[
        str | None, typer.Option(help="Keep the log in this database: postgresql+psycopg://USER@HOST/DATABASE.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Run the workers on this Ray cluster; without an address, one is started.")
    ] = None,
    ray_cpus: Annotated[float, typer.Option(min=0, help="Processors that each worker on Ray takes.")] = 1.0,
    ray_gpus: Annotated[float, typer.Option(min=0, help="Graphics processors that each worker on Ray takes.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study (studies/SPACE-TASK, or studies/RECIPE-TASK).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    A recipe sets what a published method is made of: the space, the searcher and its options, how designs are judged.
    """
    from formwright.cli.study_run import Wishes, conduct
    from formwright.search.make import trains_in_slices, usual_searcher
    from formwright.study.assemble import DEFAULT_PROXY, find_task, refuse_faulty, with_whole_paths
    from formwright.study.config import Config, TaskChoice
    from formwright.study.place import create
    from formwright.study.spaces import find_space
    from formwright.study.stop import Stop

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
    chosen = TaskChoice(task, None if data is None else str(data), official_dev, tuple(_words(text)), label, rows)
    found = find_task(chosen)
    own = f"{(proxy or [DEFAULT_PROXY])[0]}:max" if evaluator == "proxy" else _own_goal(found)
    objectives = _objectives(own, maximise or [], minimise or list(basis.minimise))
    name = searcher or basis.searcher or usual_searcher(find_space(space), len(objectives))
    training = _changed(
        basis.training, steps=steps, batch=batch, learning_rate=learning_rate, length=length, dropout=dropout
    )
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
        final_steps or 3 * training.steps,
        seed,
        _changed(basis.pretraining, **pretraining, least_overlap=least_overlap, from_scratch=from_scratch or None),
        first=basis.first_of(space),
        final_weights=final_weights,
    )
    refuse_faulty(config)
    config = with_whole_paths(config)
    folder = out or Path("studies") / _default_name(recipe or space, task)
    place = create(folder, config, storage)
    command = command_line(sys.argv[1:])
    conduct(place, Wishes(workers, ray, ray_cpus, ray_gpus, baseline=baseline, as_json=as_json, command=command))


def _refuse_idle_tolerance(tolerance: float, patience: int | None) -> None:
    if tolerance and patience is None:
        raise IllegalInput("--tolerance says what --patience takes for no better; give a --patience too")


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


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
