"""`formwright compress`: from a pretrained encoder to smaller fine-tuned models that load."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formwright.cli.compress_sizes import NAS_BERT, Manner, Wishes, compress_sizes, refuse_foreign
from formwright.cli.conduct import Interrupted
from formwright.cli.program import call, command_line
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.study.config import TrainingChoice


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
        str, typer.Option(help="eftnas: smaller models for a task. nas-bert: models of several sizes, for any task.")
    ] = "eftnas",
    task: Annotated[
        str, typer.Option(help="A task (`formwright list tasks`), or a CSV, TSV or JSON Lines file; eftnas needs one.")
    ] = "",
    sizes: Annotated[
        str, typer.Option(help="Of nas-bert: the most that each model may have, such as 5M,10M@8ms.")
    ] = "",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="The most that a delivered model may cost, such as macs=50%, latency_ms=8 or params=1e7; may be "
            "repeated (macs=75%, 50%, 35% and 25%)."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The folder with the files of a task that is not built in.")] = None,
    text: Annotated[
        str,
        typer.Option(
            help="Columns of your own file that hold the text, with commas. Of nas-bert: the text to learn from, a "
            "file or `wikitext` with --data (Python's own prose)."
        ),
    ] = "",
    label: Annotated[str, typer.Option(help="Column of your own file that holds the label.")] = "",
    official_dev: Annotated[
        bool, typer.Option("--official-dev", help="Validate on the whole official dev set, and keep no test rows.")
    ] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="Train on the first rows only.")] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.001, help="Scale all stages to about so many hours on this machine.")
    ] = None,
    teacher_epochs: Annotated[
        float | None, typer.Option(min=0.001, help="How often the teacher sees every row (3).")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(min=0.001, help="How often the super-network sees every row (6).")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=0, help="Of nas-bert: rounds that drop half (4).")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of nas-bert: steps of a block in a round (200).")] = None,
    student_steps: Annotated[
        int | None, typer.Option(min=1, help="Of nas-bert: steps of each whole student in the end (1000).")
    ] = None,
    evaluations: Annotated[int | None, typer.Option(min=1, help="Sub-networks that the search judges (200).")] = None,
    finetune: Annotated[
        float, typer.Option(min=0, help="Epochs that each delivered model is trained alone in the end.")
    ] = 0.0,
    targets: Annotated[
        int | None, typer.Option(min=2, help="Costs at which the search space is drawn up: widths of a layer (5).")
    ] = None,
    hidden: Annotated[str, typer.Option(help="Hidden sizes to choose from beside the model's own, with commas.")] = "",
    smaller: Annotated[
        bool, typer.Option("--smaller", help="Let the largest sub-network be the highest target, not the model.")
    ] = False,
    order: Annotated[
        str, typer.Option(help="What decides which heads and channels stay: first-order, movement, l1 or none.")
    ] = "first-order",
    searcher: Annotated[str, typer.Option(help="linas, nsga2, or another method of `formwright list searchers`.")] = "",
    batch: Annotated[int | None, typer.Option(min=1, help="Rows in a batch (32).")] = None,
    length: Annotated[int, typer.Option(min=8, help="Most tokens in a row.")] = 64,
    learning_rate: Annotated[
        float | None, typer.Option(help="Highest rate of the teacher (0.00005; more where --hours leaves few steps).")
    ] = None,
    network_rate: Annotated[float | None, typer.Option(help="Highest rate of the super-network (0.0001).")] = None,
    workers: Annotated[int, typer.Option(min=1, max=1000, help="Processes that search, one thread each.")] = 2,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Threads that train (as many as processors)."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    save_every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the result (compressed/MODEL-TASK).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Begin anew where another compression stands.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compress a pretrained encoder for a task: fine-tune it, and deliver the best smaller models inside it.

    With --recipe nas-bert no task is needed: it teaches chains of operations block by block, and delivers encoders of
    several sizes, to be trained on tasks later.

    Ctrl-C saves, and the same command goes on. Nothing that was finished is done again.
    """
    refuse_foreign(recipe, context)
    if recipe == NAS_BERT:
        own = Wishes(model, text, data, sizes, hours, rows, rounds, steps, student_steps, batch, length, learning_rate)
        with _resumable():
            compress_sizes(own, Manner(workers, save_every, out, force, as_json), device, seed)
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

    if order not in ORDERS:
        raise IllegalInput(f"--order is {', '.join(ORDERS)}, not {order!r}")
    columns = tuple(part.strip() for part in text.split(",") if part.strip())
    choice = TaskChoice(task, None if data is None else str(data), official_dev, columns, label, rows)
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
        training=_training(batch, learning_rate, length),
        network_rate=EFTNAS.network_rate if network_rate is None else network_rate,
        between=EFTNAS.between,
        labels=EFTNAS.labels,
        temperature=EFTNAS.temperature,
        order=order,
        whole=not smaller,
        hidden=_sizes(hidden),
        searcher=searcher or EFTNAS.searcher,
        options={},
        threads=threads or _threads_of(folder, force) or os.cpu_count() or 1,
        device=device,
        seed=seed,
        hastened=hours is not None and learning_rate is None,
    )
    run = Compression(job, folder, workers, save_every, force, as_json, command_line(sys.argv[1:]))
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
    """Say how to go on where the user stopped it."""
    try:
        yield
    except Interrupted as stopped:
        again = call(*(argument for argument in sys.argv[1:] if argument != "--force"))
        print(f"stopped at {stopped}; everything is saved. This goes on:\n  {again}", file=sys.stderr)
        raise KeyboardInterrupt from None


def _threads_of(folder: Path, force: bool) -> int | None:
    """Give the threads that a compression began with; on a machine with other processors it goes on with as many."""
    from formwright.compress.folders import RECORD

    try:
        kept = json.loads((folder / RECORD).read_bytes())["threads"]
    except (OSError, ValueError, KeyError, TypeError):  # nothing began here, or what did is refused later
        return None
    return kept if isinstance(kept, int) and not force else None


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise IllegalInput(f"--hidden lists whole numbers with commas, not {text!r}") from None
