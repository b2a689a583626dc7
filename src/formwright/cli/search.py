"""`formwright search`: find a design for a task."""

from pathlib import Path
from typing import Annotated

from formwright.cli.options import (
    DELIVERY,
    EVALUATION,
    GOALS,
    LARGEST_SEED,
    OUTPUT,
    RUNNING,
    SEARCH,
    STOP,
    TRAINING,
    AsJson,
    Data,
    DryRun,
    Force,
    Frames,
    Label,
    Observe,
    OfficialDev,
    Patience,
    RayCpus,
    RayGpus,
    Rows,
    Series,
    SetOption,
    SpendSteps,
    Task,
    TaskKind,
    Text,
    argument,
    flag,
)
from formwright.cli.run import compose_and_run

_SPACE = "A space (`formwright list spaces`), or FILE.py:NAME for one of your own; a recipe names its own."
_RECIPE = "A published method (`formwright list recipes`); explicit options override its settings."
_MAXIMISE = "A metric to maximise (default: the task's metric, or the first proxy); may be repeated."
_LIMIT = 'A hard limit, such as "params<=5M" or "latency_ms<=5"; may be repeated.'
_SEARCHER = "Search method (`formwright list searchers`); options with --set searcher.NAME=VALUE."
_EVALUATOR = "How a design is scored (`formwright list evaluators`); options with --set evaluator.NAME=VALUE."
_TRIALS = "Maximum number of trials (default 30, unless another limit is given)."
_HOURS = "Plan the run to take at most about N hours; the search leaves time for the delivered models."
_STEPS = (
    "Training steps of each trial (default 300; fewer rows: 10 epochs, at least 100), or of the super-network of a "
    "recipe that trains one."
)
_LENGTH = "Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 128)."
_KEEP = "Number of models to deliver: the best, or those of the Pareto front (default: as the recipe says, else 1)."
_FINAL = "Maximum training steps of each delivered model (default: three times --steps, or an epoch)."
_WEIGHTS = "Initial weights of the delivered models: fresh or shared (default: as the evaluator leaves them)."
_BASELINE = "Also train a plain baseline design of at least the same size."
_DEVICE = "Where models are trained, evaluated and measured: auto, cpu, cuda or mps."
_STORAGE = "Keep the log in this database: postgresql+psycopg://USER@HOST/DATABASE."
_RAY = "Run the workers on the Ray cluster at this address; without an address, start one here."


def search(
    space: Annotated[str, argument(_SPACE, show_default=False)] = "",
    *,
    task: Task,
    recipe: Annotated[str, flag(_RECIPE, SEARCH)] = "",
    data: Data = None,
    text: Text = "",
    label: Label = "",
    task_kind: TaskKind = "",
    series: Series = "",
    frames: Frames = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    maximise: Annotated[list[str] | None, flag(_MAXIMISE, GOALS)] = None,
    minimise: Annotated[list[str] | None, flag("A metric or cost to minimise; may be repeated.", GOALS)] = None,
    limits: Annotated[list[str] | None, flag(_LIMIT, GOALS, "--limit")] = None,
    searcher: Annotated[str, flag(_SEARCHER, SEARCH)] = "",
    evaluator: Annotated[str, flag(_EVALUATOR, EVALUATION)] = "",
    settings: SetOption = None,
    trials: Annotated[int | None, flag(_TRIALS, STOP, min=1)] = None,
    seconds: Annotated[float | None, flag("Maximum number of seconds.", STOP, min=0.001)] = None,
    hours: Annotated[float | None, flag(_HOURS, STOP, min=0.001)] = None,
    spend_steps: SpendSteps = None,
    patience: Patience = None,
    tolerance: Annotated[float, flag("Minimum improvement that resets --patience.", STOP, min=0)] = 0.0,
    max_failures: Annotated[int, flag("Stop when more than N trials of a run have failed.", STOP, min=0)] = 20,
    steps: Annotated[int | None, flag(_STEPS, TRAINING, min=1)] = None,
    batch: Annotated[int | None, flag("Rows in a batch (default 64).", TRAINING, min=1)] = None,
    learning_rate: Annotated[float | None, flag("Peak learning rate (default 0.002).", TRAINING)] = None,
    length: Annotated[int | None, flag(_LENGTH, TRAINING, min=8)] = None,
    dropout: Annotated[float | None, flag("Dropout rate of all trainings (default 0).", TRAINING, min=0, max=1)] = None,
    keep: Annotated[int | None, flag(_KEEP, DELIVERY, min=1)] = None,
    final_steps: Annotated[int | None, flag(_FINAL, DELIVERY, min=1)] = None,
    final_weights: Annotated[str, flag(_WEIGHTS, DELIVERY)] = "",
    baseline: Annotated[bool, flag(_BASELINE, DELIVERY, "--baseline/--no-baseline")] = True,
    workers: Annotated[int, flag("Worker processes on this machine, one thread each.", RUNNING, min=1, max=1000)] = 2,
    device: Annotated[str, flag(_DEVICE, RUNNING)] = "auto",
    storage: Annotated[str | None, flag(_STORAGE, RUNNING)] = None,
    ray: Annotated[str | None, flag(_RAY, RUNNING)] = None,
    ray_cpus: RayCpus = 1.0,
    ray_gpus: RayGpus = 0.0,
    seed: Annotated[int, flag("Random seed.", SEARCH, min=0, max=LARGEST_SEED)] = 0,
    out: Annotated[
        Path | None, flag("Folder of the study (default: studies/SPACE-TASK, or studies/RECIPE-TASK).", OUTPUT)
    ] = None,
    observers: Observe = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Search a space for the design that fits a task, and deliver it as a trained model that loads.

    A recipe sets the parts of a published method: space, searcher and its options, how designs are evaluated. The same
    command resumes a search that was interrupted.
    """
    flags = dict(locals())
    from formwright.compose import compose_search, default_folder

    compose_and_run(compose_search, flags, default_folder("studies", recipe or space, task))
