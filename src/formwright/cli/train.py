"""`formwright train`: a card, or a model's folder, trained on a task."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from formwright.cli import panels
from formwright.cli.conduct import Interrupted
from formwright.cli.options import AsJson, CardOrFolder, Data, Device, Force, OfficialDev, Rows, Task, Text
from formwright.cli.output import echo, note, print_json, print_table
from formwright.cli.program import call
from formwright.cli.task_options import LabelOption, TaskKindOption, columns_of
from formwright.cli.train_job import Finished, Job
from formwright.core.errors import IllegalInput

_PRETRAIN_STEPS = 1000
_LABELS, _HIDDEN = 0.5, 1.0  # weights beside a teacher


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
    accumulate: Annotated[
        int,
        typer.Option(min=1, help="Batches whose gradients are averaged for one step.", rich_help_panel=panels.TRAINING),
    ] = 1,
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
    warmup: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.99,
            help="Share of the steps during which the learning rate rises.",
            rich_help_panel=panels.TRAINING,
        ),
    ] = 0.1,
    decay: Annotated[
        str, typer.Option(help="How the learning rate falls: linear, cosine or none.", rich_help_panel=panels.TRAINING)
    ] = "linear",
    weight_decay: Annotated[
        float, typer.Option(min=0, help="Weight decay of AdamW.", rich_help_panel=panels.TRAINING)
    ] = 0.01,
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
    next_sentence: Annotated[
        bool,
        typer.Option(
            "--next-sentence",
            help="Also pretrain on predicting which sentence follows which.",
            rich_help_panel=panels.DISTILLATION,
        ),
    ] = False,
    distil_from: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a model fine-tuned on the task; it becomes the teacher.",
            rich_help_panel=panels.DISTILLATION,
        ),
    ] = None,
    distil_labels: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Weight of the labels; the teacher's scores get the rest (default 0.5).",
            rich_help_panel=panels.DISTILLATION,
        ),
    ] = None,
    distil_hidden: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Weight of the distance to the teacher's last hidden states (default 1).",
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
    threads: Annotated[
        int, typer.Option(min=1, max=1024, help="Threads used for training.", rich_help_panel=panels.RUNNING)
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Train a design on a task, or fine-tune a model; Ctrl-C saves; run the same command again to resume."""
    if steps is not None and epochs is not None:
        raise IllegalInput("give --steps or --epochs, not both")
    if patience is not None and judge_every == 0:
        raise IllegalInput("--patience counts evaluations in between, and --judge-every 0 asks for none")
    if pretrain_steps is not None and pretrain is None:
        raise IllegalInput("--pretrain-steps is part of pretraining; say on what with --pretrain")
    if distil_from is None and (distil_labels is not None or distil_hidden is not None):
        raise IllegalInput("--distil-labels and --distil-hidden weigh a teacher; name one with --distil-from")
    job = Job(
        source=source,
        task=task,
        data=None if data is None else str(data),
        text=columns_of(text),
        label=label,
        task_kind=task_kind,
        official_dev=official_dev,
        rows=rows,
        steps=steps,
        epochs=epochs,
        batch=batch,
        accumulate=accumulate,
        length=length,
        learning_rate=learning_rate,
        warmup=warmup,
        decay=decay,
        weight_decay=weight_decay,
        dropout=dropout,
        judge_every=judge_every,
        patience=patience,
        pretrain=pretrain,
        pretrain_steps=pretrain_steps or _PRETRAIN_STEPS,
        next_sentence=next_sentence,
        seed=seed,
        device=device,
        threads=threads,
        distil_from=None if distil_from is None else str(distil_from),
        distil_labels=_LABELS if distil_labels is None else distil_labels,
        distil_hidden=_HIDDEN if distil_hidden is None else distil_hidden,
        beams=beams,
    )
    try:
        finished = job.run(out or job.usual_folder, save_every, test=test, force=force)
    except Interrupted as stopped:
        _say_how_to_go_on(stopped)
        raise KeyboardInterrupt from None
    if as_json:
        print_json(finished.facts)
    else:
        _print(finished)


def _say_how_to_go_on(stopped: Interrupted) -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--force"]
    note(f"stopped at {stopped}; everything is saved. To resume:\n  {call(*arguments)}")


def _print(finished: Finished) -> None:
    from formwright.study.conclusion import with_interval

    facts = finished.facts
    losses = facts["losses"]
    last = losses[-max(len(losses) // 20, 1) :]
    rows = []
    for split, scores in (("validation", facts["metrics"]), ("test", facts["test"] or {})):
        known = facts["evidence"].get(split)
        for name, value in scores.items():
            rows.append((f"{split} {name}", with_interval(value, known["intervals"].get(name))))
        for name, value in (known["majority"]["scores"] if known and known["majority"] else {}).items():
            rows.append((f"{known['majority']['answer']}: {split} {name}", f"{value:.4f}"))
    rows += [
        ("loss at the end", f"{sum(last) / len(last):.4f}"),
        ("steps", f"{facts['steps']:,}"),
        ("step of the best weights", f"{facts['best_step']:,}"),
        ("parameters", f"{facts['params']:,}"),
        ("padding", f"{facts['padding']:.1%}"),
        ("seconds of training", f"{facts['seconds']:.1f}"),
    ]
    echo(f"{facts['conclusion'][0]}\n")
    print_table([f"{facts['name']} on {facts['task']}", ">measured"], rows)
    echo(f"the model is in {facts['model']}; it loads with transformers, see the README.md in it")
