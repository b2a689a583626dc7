"""`formwright compress`: from a pretrained encoder to smaller fine-tuned models that load."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from formwright.cli import panels
from formwright.cli.compress_sizes import NAS_BERT, Manner, Wishes, compress_sizes, refuse_foreign
from formwright.cli.conduct import Interrupted
from formwright.cli.options import AsJson, Data, Device, Force, OfficialDev, Rows
from formwright.cli.output import note
from formwright.cli.program import call, command_line
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.study.config import TrainingChoice

T = TypeVar("T")


def compress(
    context: typer.Context,
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
            help="eftnas: smaller models for one task. nas-bert: encoders of several sizes for any task.",
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
    sizes: Annotated[
        str,
        typer.Option(
            help="Maximum parameters (and latency) of each model, such as 5M,10M@8ms.",
            rich_help_panel=panels.SIZE_COMPRESSION,
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
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Plan all stages to take about this many hours on this machine.",
            rich_help_panel=panels.GOALS,
        ),
    ] = None,
    teacher_epochs: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Epochs of fine-tuning the teacher (default 3).", rich_help_panel=panels.TASK_COMPRESSION
        ),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Epochs of training the super-network (default 6).", rich_help_panel=panels.TASK_COMPRESSION
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Rounds that each drop half of the candidates (default 4).",
            rich_help_panel=panels.SIZE_COMPRESSION,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Training steps of a block in a round (default 200).", rich_help_panel=panels.SIZE_COMPRESSION
        ),
    ] = None,
    student_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Final training steps of each whole student (default 1000).",
            rich_help_panel=panels.SIZE_COMPRESSION,
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1, help="Sub-networks that the search evaluates (default 200).", rich_help_panel=panels.TASK_COMPRESSION
        ),
    ] = None,
    finetune: Annotated[
        float,
        typer.Option(
            min=0,
            help="Epochs of training each delivered model alone at the end.",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = 0.0,
    targets: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Cost levels for which the search space is built: widths of a layer (default 5).",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = None,
    hidden: Annotated[
        str,
        typer.Option(
            help="Further hidden sizes to choose from, separated by commas.", rich_help_panel=panels.TASK_COMPRESSION
        ),
    ] = "",
    smaller: Annotated[
        bool,
        typer.Option(
            "--smaller",
            help="Limit the largest sub-network to the largest target instead of the whole model.",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = False,
    order: Annotated[
        str,
        typer.Option(
            help="Importance score of heads and channels: first-order, movement, l1 or none.",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = "first-order",
    accept_weak_teacher: Annotated[
        bool,
        typer.Option(
            "--accept-weak-teacher",
            help="Continue with a teacher that is hardly better than always giving the most common answer.",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = False,
    searcher: Annotated[
        str,
        typer.Option(
            help="Search method: linas, nsga2, or another of `formwright list searchers`.",
            rich_help_panel=panels.TASK_COMPRESSION,
        ),
    ] = "",
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
    network_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak learning rate of the super-network (default 0.0001).", rich_help_panel=panels.TASK_COMPRESSION
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Worker processes of the search, one thread each (default 2, or as the search of this run began).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Threads used for training (default: the number of CPUs).",
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
    as_json: AsJson = False,
) -> None:
    """Compress a pretrained encoder for a task: fine-tune it, and deliver the best smaller models inside it.

    With --recipe nas-bert no task is needed: it trains chains of operations block by block, and delivers encoders of
    several sizes that are fine-tuned later.

    Ctrl-C saves; run the same command again to resume. Finished stages are skipped.
    """
    refuse_foreign(recipe, context)
    from formwright.study.run_record import RunOptions

    if recipe == NAS_BERT:
        own = Wishes(model, text, data, sizes, hours, rows, rounds, steps, student_steps, batch, length, learning_rate)
        with _resumable():
            compress_sizes(own, Manner(workers or RunOptions.workers, save_every, out, force, as_json), device, seed)
        return
    if not task:
        raise IllegalInput("say what the models are for with --task; `formwright list tasks` lists tasks")
    from formwright.cli.compress_run import Compression
    from formwright.compress.job import Job, usual_folder
    from formwright.compress.plan import ORDERS
    from formwright.compress.targets import USUAL
    from formwright.recipes.eftnas import EFTNAS
    from formwright.study.assemble import whole_task
    from formwright.study.config import TaskChoice
    from formwright.tasks.row_length import PIECES
    from formwright.train.device import choose_device

    if order not in ORDERS:
        raise IllegalInput(f"--order is {', '.join(ORDERS)}, not {order!r}")
    columns = columns_of(text)
    choice = TaskChoice(task, None if data is None else str(data), official_dev, columns, label, rows, task_kind)
    folder = out or usual_folder(model, task)
    job = Job(
        model=str(Path(model).resolve()) if model and os.path.isdir(model) else model,
        task=whole_task(choice),
        targets=tuple(target or USUAL),
        configurations=targets or EFTNAS.configurations,
        hours=hours,
        teacher_epochs=teacher_epochs or EFTNAS.teacher_epochs,
        epochs=epochs or EFTNAS.epochs,
        evaluations=evaluations or EFTNAS.evaluations,
        finetune=finetune,
        training=_training(batch, learning_rate, length or PIECES),
        usual_length=length is None,
        network_rate=EFTNAS.network_rate if network_rate is None else network_rate,
        between=EFTNAS.between,
        labels=EFTNAS.labels,
        temperature=EFTNAS.temperature,
        order=order,
        whole=not smaller,
        hidden=_sizes(hidden),
        searcher=searcher or EFTNAS.searcher,
        options={},
        threads=threads or _kept(folder, force, "threads", int) or os.cpu_count() or 1,
        device=device if device != "auto" else _kept(folder, force, "device", str) or choose_device().type,
        seed=seed,
        hastened=hours is not None and learning_rate is None,
    )
    workers = workers or _workers_of(folder, force)
    run = Compression(job, folder, workers, save_every, force, as_json, command_line(sys.argv[1:]), accept_weak_teacher)
    with _resumable():
        run.conduct()


def _training(batch: int | None, learning_rate: float | None, length: int) -> "TrainingChoice":
    """Give the training of the teacher: the recipe's, but for what the user said."""
    from formwright.recipes.eftnas import EFTNAS
    from formwright.study.config import TrainingChoice

    rate = EFTNAS.learning_rate if learning_rate is None else learning_rate
    return TrainingChoice(
        batch=batch or EFTNAS.batch, learning_rate=rate, warmup=0.1, length=length, dropout=EFTNAS.dropout
    )


@contextmanager
def _resumable() -> Iterator[None]:
    """Say how to resume where the user stopped it."""
    try:
        yield
    except Interrupted as stopped:
        again = call(*(argument for argument in sys.argv[1:] if argument != "--force"))
        note(f"stopped at {stopped}; everything is saved. To resume:\n  {again}")
        raise KeyboardInterrupt from None


def _workers_of(folder: Path, force: bool) -> int:
    """Give the workers that a search began with, so that it is resumed with as many."""
    from formwright.study.place import find, holds_study
    from formwright.study.run_record import RunOptions, last_options

    if force or not holds_study(folder):
        return RunOptions.workers
    with find(str(folder)).open() as opened:
        return last_options(opened.log).workers


def _kept(folder: Path, force: bool, name: str, kind: type[T]) -> T | None:
    """Give an option that a compression began with; on another machine it is resumed with the same."""
    from formwright.compress.folders import RECORD

    try:
        kept = json.loads((folder / RECORD).read_bytes())[name]
    except (OSError, ValueError, KeyError, TypeError):  # nothing began here, or what did is refused later
        return None
    return kept if isinstance(kept, kind) and not force else None


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise IllegalInput(f"--hidden lists whole numbers with commas, not {text!r}") from None
