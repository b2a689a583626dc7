"""`formwright compress`: from a pretrained encoder to smaller models that load."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from formwright.cli.options import (
    DATA,
    GOALS,
    LARGEST_SEED,
    OUTPUT,
    RUNNING,
    STOP,
    TRAINING,
    AsJson,
    Data,
    Device,
    DryRun,
    Force,
    Frames,
    Label,
    Observe,
    OfficialDev,
    Rows,
    Series,
    SetOption,
    TaskKind,
    argument,
    flag,
)
from formwright.cli.output import print_json
from formwright.cli.run import compose_and_run
from formwright.core.errors import Unsuccessful

_MODEL = "A model's folder, or its name on the hub (MiniLM of the extra `demo`)."
_RECIPE = (
    "eftnas: smaller models for one task. nas-bert: encoders of several sizes for any task. `formwright list recipes` "
    "lists all."
)
_TASK = "A task (`formwright list tasks`), or a CSV, TSV or JSON file; required by eftnas."
_TARGET = (
    'Maximum cost of a delivered model, such as "macs<=50%", latency_ms=8 or params=10M; may be repeated (default: '
    "macs=75%, 50%, 35% and 25%)."
)
_SIZES = "With nas-bert: maximum parameters (and latency) of each model, such as 5M,10M@8ms."
_TRIALS = "Sub-networks that the search evaluates (default 200)."
_TEXT = (
    "Text columns of your own file, separated by commas. With nas-bert: the training text, a file or `wikitext` with "
    "--data (default: the documentation of Python)."
)
_LENGTH = "Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 256; 64 for nas-bert)."
_RATE = "Peak learning rate of the teacher (default 0.00005; higher where --hours leaves few steps)."
_WEAK = "Continue with a teacher that is hardly better than always giving the most common answer."
_WORKERS = "Worker processes on this machine, one thread each (default 2, or as in the last run)."
_THREADS = "Threads of a training that is done alone (default: the number of CPUs)."


def compress(
    model: Annotated[str, argument(_MODEL, show_default=False)] = "",
    *,
    recipe: Annotated[str, flag(_RECIPE, GOALS)] = "eftnas",
    task: Annotated[str, flag(_TASK, DATA)] = "",
    targets: Annotated[list[str] | None, flag(_TARGET, GOALS, "--target")] = None,
    sizes: Annotated[str, flag(_SIZES, GOALS)] = "",
    hours: Annotated[
        float | None, flag("Plan all stages to take about this many hours on this machine.", GOALS, min=0.001)
    ] = None,
    trials: Annotated[int | None, flag(_TRIALS, STOP, min=1)] = None,
    data: Data = None,
    text: Annotated[str, flag(_TEXT, DATA)] = "",
    label: Label = "",
    task_kind: TaskKind = "",
    series: Series = "",
    frames: Frames = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    batch: Annotated[int | None, flag("Rows in a batch (default 32).", TRAINING, min=1)] = None,
    length: Annotated[int | None, flag(_LENGTH, TRAINING, min=8)] = None,
    learning_rate: Annotated[float | None, flag(_RATE, TRAINING)] = None,
    settings: SetOption = None,
    accept_weak_teacher: Annotated[bool, flag(_WEAK, TRAINING, "--accept-weak-teacher")] = False,
    workers: Annotated[int | None, flag(_WORKERS, RUNNING, min=1, max=1000)] = None,
    threads: Annotated[int | None, flag(_THREADS, RUNNING, min=1, max=1024)] = None,
    device: Device = "auto",
    save_every: Annotated[int, flag("Training steps between checkpoints.", TRAINING, min=1)] = 100,
    seed: Annotated[int, flag("Random seed.", TRAINING, min=0, max=LARGEST_SEED)] = 0,
    out: Annotated[Path | None, flag("Folder of the run (default: compressed/MODEL-TASK).", OUTPUT)] = None,
    force: Force = False,
    dry_run: DryRun = False,
    observers: Observe = None,
    as_json: AsJson = False,
) -> None:
    """Compress a pretrained encoder for a task: fine-tune it, and deliver the best smaller models inside it.

    With --recipe nas-bert no task is needed: it trains chains of operations block by block, and delivers encoders of
    several sizes that are fine-tuned later. Every other option of a recipe or a stage is set with --set, such as
    teacher.epochs=5, super-network.epochs=10 or order=l1 (`formwright list recipes`, `formwright list stages`).

    Ctrl-C saves; run the same command again, or `formwright resume DIR`. Finished stages are skipped.
    """
    flags = dict(locals())
    from formwright.compose import compose_compression, default_folder
    from formwright.pipeline.fine_tune import WeakTeacher

    where = default_folder("compressed", Path(model).name or "MiniLM", task or "sizes")
    try:
        compose_and_run(compose_compression, flags, where)
    except WeakTeacher as error:
        if as_json:
            print_json({"models": [], "weak_teacher": asdict(error.weakness)})
        raise Unsuccessful(
            f"{error}. On the command line these are --set teacher.epochs=N, --hours, --learning-rate, --out, --force "
            "and --accept-weak-teacher"
        ) from None
