"""`formwright train`: a card, or a model's folder, trained on a task."""

from pathlib import Path
from typing import Annotated

from formwright.cli.options import (
    DELIVERY,
    DISTILLATION,
    LARGEST_SEED,
    OUTPUT,
    TRAINING,
    AsJson,
    CardOrFolder,
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
    Task,
    TaskKind,
    Text,
    flag,
)
from formwright.cli.run import compose_and_run

_STEPS = "Training steps (default 300; many rows: one epoch, at most 3,000)."
_LENGTH = (
    "Maximum number of tokens in a row (default: covers 95 % of the training rows, at most 128 from scratch and 256 "
    "for a folder)."
)
_RATE = "Peak learning rate (default 0.001 from scratch, 0.0003 with --pretrain, 0.00005 for a folder)."
_DROPOUT = "Dropout rate (default 0 from scratch, 0.1 for a model's folder)."
_JUDGE = (
    "Evaluate on the validation set every N steps, and keep the best weights (default: 20 times in all, fewer where "
    "there are many rows; 0: at the end only)."
)
_PATIENCE = "Stop after N evaluations without an improvement (default 5, and not before half of the steps)."
_PRETRAIN = "Pretrain first with masked words of this task's text; `self` is the text of --task."
_TEACHER = "Folder of a model fine-tuned on the task; it becomes the teacher."
_BEAMS = "Beams used to evaluate a model that generates text."
_TEST = "At the end, evaluate on the test rows once; this is recorded."
_SAVE = "Training steps between checkpoints; 0: only when stopped."
_SEED = "Random seed of weights, order of rows and dropout."


def train(
    source: CardOrFolder,
    task: Task,
    data: Data = None,
    text: Text = "",
    label: Label = "",
    task_kind: TaskKind = "",
    series: Series = "",
    frames: Frames = "",
    official_dev: OfficialDev = False,
    rows: Rows = None,
    steps: Annotated[int | None, flag(_STEPS, TRAINING, min=1)] = None,
    epochs: Annotated[float | None, flag("Epochs: passes over the training rows.", TRAINING, min=0)] = None,
    batch: Annotated[int, flag("Rows in a batch.", TRAINING, min=1)] = 32,
    length: Annotated[int | None, flag(_LENGTH, TRAINING, min=8)] = None,
    learning_rate: Annotated[float | None, flag(_RATE, TRAINING)] = None,
    dropout: Annotated[float | None, flag(_DROPOUT, TRAINING, min=0, max=1)] = None,
    judge_every: Annotated[int | None, flag(_JUDGE, TRAINING, min=0)] = None,
    patience: Annotated[int | None, flag(_PATIENCE, TRAINING, min=1)] = None,
    pretrain: Annotated[str | None, flag(_PRETRAIN, DISTILLATION)] = None,
    pretrain_steps: Annotated[int | None, flag("Pretraining steps (default 1000).", DISTILLATION, min=1)] = None,
    distil_from: Annotated[Path | None, flag(_TEACHER, DISTILLATION)] = None,
    beams: Annotated[int, flag(_BEAMS, TRAINING, min=1, max=1024)] = 1,
    test: Annotated[bool, flag(_TEST, DELIVERY, "--test")] = False,
    out: Annotated[
        Path | None, flag("Folder for checkpoints and the model (default: trained/CARD-TASK).", OUTPUT)
    ] = None,
    save_every: Annotated[int, flag(_SAVE, TRAINING, min=0)] = 200,
    force: Force = False,
    seed: Annotated[int, flag(_SEED, TRAINING, min=0, max=LARGEST_SEED)] = 0,
    device: Device = "auto",
    observers: Observe = None,
    settings: SetOption = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Train a design on a task, or fine-tune a model; Ctrl-C saves; run the same command again to resume.

    Further options are set by their paths, such as --set training.weight_decay=0.1 or --set distillation.labels=0.3;
    `formwright list stages --options` shows all of them.
    """
    flags = dict(locals())
    from formwright.compose import compose_training, default_folder

    compose_and_run(compose_training, flags, default_folder("trained", Path(source).stem, task))
