"""`formwright train`: a card, or a model's folder, trained on a task."""

from pathlib import Path
from typing import Annotated

import typer

from formwright.cli import panels
from formwright.cli.options import (
    AsJson,
    CardOrFolder,
    Data,
    Device,
    DryRun,
    Force,
    Observe,
    OfficialDev,
    Rows,
    SetOption,
    Task,
    Text,
)
from formwright.cli.run import run_and_print, with_settings
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of
from formwright.core.errors import IllegalInput


def train(
    source: CardOrFolder,
    task: Task,
    data: Data = None,
    text: Text = "",
    label: LabelOption = "",
    task_kind: TaskKindOption = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Training steps (default 300; many rows: one epoch, at most 3,000).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(min=0, help="Epochs: passes over the training rows.", rich_help_panel=panels.TRAINING),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows in a batch.", rich_help_panel=panels.TRAINING)] = 32,
    length: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 128 from "
            "scratch and 256 for a folder).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak learning rate (default 0.001 from scratch, 0.0003 with --pretrain, 0.00005 for a folder).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Dropout rate (default 0 from scratch, 0.1 for a model's folder).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    judge_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Evaluate on the validation set every N steps, and keep the best weights (default: 20 times in all, "
            "fewer where there are many rows; 0: at the end only).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after N evaluations without an improvement (default 5, and not before half of the steps).",
            rich_help_panel=panels.TRAINING,
        ),
    ] = None,
    pretrain: Annotated[
        str | None,
        typer.Option(
            help="Pretrain first with masked words of this task's text; `self` is the text of --task.",
            rich_help_panel=panels.DISTILLATION,
        ),
    ] = None,
    pretrain_steps: Annotated[
        int | None, typer.Option(min=1, help="Pretraining steps (default 1000).", rich_help_panel=panels.DISTILLATION)
    ] = None,
    distil_from: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a model fine-tuned on the task; it becomes the teacher.",
            rich_help_panel=panels.DISTILLATION,
        ),
    ] = None,
    beams: Annotated[
        int,
        typer.Option(
            min=1, max=1024, help="Beams used to evaluate a model that generates text.", rich_help_panel=panels.TRAINING
        ),
    ] = 1,
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="At the end, evaluate on the test rows once; this is recorded.",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for checkpoints and the model (default: trained/CARD-TASK).", rich_help_panel=panels.OUTPUT
        ),
    ] = None,
    save_every: Annotated[
        int,
        typer.Option(
            min=0, help="Training steps between checkpoints; 0: only when stopped.", rich_help_panel=panels.TRAINING
        ),
    ] = 200,
    force: Force = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**63 - 1,
            help="Random seed of weights, order of rows and dropout.",
            rich_help_panel=panels.TRAINING,
        ),
    ] = 0,
    device: Device = "auto",
    observe: Observe = None,
    settings: SetOption = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Train a design on a task, or fine-tune a model; Ctrl-C saves; run the same command again to resume.

    Further options are set by their paths, such as --set training.weight_decay=0.1 or --set distillation.labels=0.3;
    `formwright list stages --options` shows all of them.
    """
    from formwright.api import default_name
    from formwright.pipeline.model_training import Distillation, Pretraining
    from formwright.pipeline.run import RunOptions
    from formwright.pipeline.task_choice import TaskChoice
    from formwright.pipeline.train_model import train_pipeline

    if pretrain is None and pretrain_steps is not None:
        raise IllegalInput("--pretrain-steps is part of pretraining; say on what with --pretrain")
    folder = None if data is None else str(data)
    choice = TaskChoice(task, folder, official_dev, columns_of(text), label, rows, task_kind)
    pipeline = train_pipeline(
        source,
        choice,
        steps=steps,
        epochs=epochs,
        batch=batch,
        length=length,
        learning_rate=learning_rate,
        dropout=dropout,
        device=device,
        judge_every=judge_every,
        patience=patience,
        beams=beams,
        test=test,
        pretraining=None if pretrain is None else Pretraining(pretrain, pretrain_steps or Pretraining.steps),
        distillation=None if distil_from is None else Distillation(str(distil_from)),
        seed=seed,
    )
    run_and_print(
        with_settings(pipeline, {}, settings),
        out or Path("trained") / default_name(Path(source).stem, task),
        RunOptions(save_every=save_every),
        observe=observe,
        as_json=as_json,
        dry_run=dry_run,
        force=force,
    )
