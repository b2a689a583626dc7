"""`formwright compress --recipe nas-bert`: from its options to a job."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from formwright.core.errors import IllegalInput, UnknownName

EFTNAS, NAS_BERT = "eftnas", "nas-bert"
_BY_SIZE = {"sizes", "rounds", "steps", "student_steps"}
_BY_TASK = {
    "task",
    "target",
    "label",
    "task_kind",
    "official_dev",
    "teacher_epochs",
    "epochs",
    "evaluations",
    "finetune",
    "targets",
    "hidden",
    "smaller",
    "order",
    "searcher",
    "network_rate",
    "accept_weak_teacher",
    "threads",
}


def refuse_foreign(recipe: str, context: typer.Context) -> None:
    """Refuse a recipe that is not known, and options that only the other one has."""
    if recipe not in (EFTNAS, NAS_BERT):
        raise UnknownName("recipe of compression", recipe, [EFTNAS, NAS_BERT])
    foreign, other = (_BY_TASK, EFTNAS) if recipe == NAS_BERT else (_BY_SIZE, NAS_BERT)
    wrong = [f"--{name.replace('_', '-')}" for name in context.params if name in foreign and _is_given(name, context)]
    if wrong:
        raise IllegalInput(f"{', '.join(wrong)}: only --recipe {other} has that, and this is --recipe {recipe}")


def _is_given(name: str, context: typer.Context) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@dataclass(frozen=True)
class Wishes:
    """What the user said of the models and of their training; None where nothing was said."""

    model: str
    text: str
    data: Path | None
    sizes: str
    hours: float | None
    rows: int | None
    rounds: int | None
    steps: int | None
    student_steps: int | None
    batch: int | None
    length: int | None
    learning_rate: float | None


@dataclass(frozen=True)
class Manner:
    """How a compression is conducted and shown."""

    workers: int
    save_every: int
    out: Path | None
    force: bool
    as_json: bool


def compress_sizes(wishes: Wishes, manner: Manner, device: str, seed: int) -> None:
    """Deliver encoders of several sizes."""
    from formwright.cli.compress_blocks import BlockCompression
    from formwright.compress.blockwise.job import Job
    from formwright.recipes.nas_bert import NAS_BERT as PUBLISHED
    from formwright.tasks.row_length import PIECES

    said: dict[str, Any] = {
        "rounds": wishes.rounds,
        "round_steps": wishes.steps,
        "student_steps": wishes.student_steps,
        "batch": wishes.batch,
        "learning_rate": wishes.learning_rate,
    }
    is_folder = bool(wishes.model) and os.path.isdir(wishes.model)
    is_file = bool(wishes.text) and os.path.isfile(wishes.text)
    job = Job(
        model=str(Path(wishes.model).resolve()) if is_folder else wishes.model,
        text=str(Path(wishes.text).resolve()) if is_file else wishes.text,
        data=None if wishes.data is None else str(wishes.data.resolve()),
        sizes=wishes.sizes,
        hours=wishes.hours,
        length=wishes.length or PIECES,
        rows=wishes.rows,
        method=replace(PUBLISHED, **{name: value for name, value in said.items() if value is not None}),
        device=device,
        seed=seed,
    )
    name = Path(wishes.model).name or "MiniLM"
    out = manner.out or Path("compressed") / f"{name}-sizes"
    BlockCompression(job, out, manner.workers, manner.save_every, manner.force, manner.as_json).conduct()
