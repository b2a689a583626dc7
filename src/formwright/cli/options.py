"""Options that several commands share, each declared once, and the topics by which `--help` groups options."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

DATA = "Task and data"
GOALS = "Goals and limits"
SEARCH = "Search method"
PARTS = "Options of parts"
EVALUATION = "How designs are evaluated"
STOP = "When to stop"
TRAINING = "Training"
DISTILLATION = "Pretraining and distillation"
DELIVERY = "Delivered models"
MEASUREMENT = "Measurement"
SAMPLES = "Samples and counts"
RUNNING = "Hardware and workers"
OUTPUT = "Output"

RAY, RAY_DEFAULT = "--ray", "local"
LARGEST_SEED = 2**63 - 1


def flag(about: str, topic: str | None, *names: str, **settings: Any) -> Any:
    """Declare an option by its help and topic; `names` where its parameter is called otherwise, `settings` of typer."""
    return typer.Option(*names, help=about, rich_help_panel=topic, **settings)


def argument(about: str, metavar: str | None = None, **settings: Any) -> Any:
    """Declare an argument by its help."""
    return typer.Argument(help=about, metavar=metavar, **settings)


CardOrFolder = Annotated[
    str, argument("A published card, a card's JSON file, or a model's folder.", metavar="CARD_OR_FOLDER")
]
ModelFolder = Annotated[Path, argument("Folder of a delivered or exported model.", metavar="FOLDER")]
RunSource = Annotated[str, argument("The folder of a run, or a study's DATABASE_URL#NAME.", metavar="DIR_OR_URL")]

Task = Annotated[str, flag("A task (`formwright list tasks`), or a CSV, TSV or JSON file.", DATA)]
Data = Annotated[Path | None, flag("Folder with the files of a task that is not built in.", DATA)]
Text = Annotated[str, flag("Text columns of your own file, separated by commas.", DATA)]
_LABEL = "Label column of your own file, or several columns of 0 and 1 (multi-label)."
Label = Annotated[str, flag(_LABEL, DATA, metavar="COLUMN[,COLUMN...]")]
_KIND = "Kind of data in your own file (`formwright list kinds`; default: guessed)."
TaskKind = Annotated[str, flag(_KIND, DATA, metavar="KIND")]
_SERIES = "Column that names the series, where a row of your own file is one step of it (--task-kind series)."
Series = Annotated[str, flag(_SERIES, DATA, metavar="COLUMN")]
_FRAMES = "Frames of recordings (default: window_ms=25,hop_ms=10, and as many mel bands as the design reads)."
Frames = Annotated[str, flag(_FRAMES, DATA, metavar="window_ms=N,hop_ms=N,bands=N")]
OfficialDev = Annotated[
    bool, flag("Validate on the whole official dev set; no test rows are kept.", DATA, "--official-dev")
]
Rows = Annotated[int | None, flag("Train on the first N rows only.", DATA, min=1)]

_SET = "Set any option of a part, such as searcher.population=40; may be repeated (`formwright list KIND --options`)."
SetOption = Annotated[list[str] | None, flag(_SET, PARTS, "--set", metavar="PART.OPTION=VALUE")]
_SPEND = "Maximum number of training steps of all trials together."
SpendSteps = Annotated[int | None, flag(_SPEND, STOP, "--spend-steps", min=1)]
Patience = Annotated[int | None, flag("Stop after N trials without an improvement.", STOP, min=1)]

RayCpus = Annotated[float | None, flag("CPUs reserved for each worker on Ray.", RUNNING, min=0)]
RayGpus = Annotated[float | None, flag("GPUs reserved for each worker on Ray.", RUNNING, min=0)]
Device = Annotated[str, flag("Where models run: auto, cpu, cuda or mps.", RUNNING)]
DryRun = Annotated[bool, flag("Print stages, time, costs and disk; do nothing.", OUTPUT, "--dry-run")]
_TRUST = "Run the Python file of the study's space, even if you have not run it before."
TrustSpaceFile = Annotated[bool, flag(_TRUST, RUNNING, "--trust-space-file")]
_OBSERVE = "Also report to tensorboard, mlflow or wandb (`formwright list observers`); may be repeated."
Observe = Annotated[list[str] | None, flag(_OBSERVE, OUTPUT, "--observe", metavar="NAME[:OPTION=VALUE,...]")]
Force = Annotated[bool, flag("Overwrite an existing run.", OUTPUT, "--force")]
AsJson = Annotated[bool, flag("Print the result as one JSON object.", OUTPUT, "--json")]


def columns_of(text: str | None) -> tuple[str, ...]:
    """List the columns that an option such as `--text first,second` names."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


class WithRay(TyperCommand):
    """Read `--ray` without an address as a cluster on this machine; typer knows no optional values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_value(args))


def with_value(arguments: list[str]) -> list[str]:
    """Give `--ray` its default where no value follows it."""
    words = []
    for one, after in zip(arguments, [*arguments[1:], "--"], strict=False):
        words += [one, RAY_DEFAULT] if one == RAY and after.startswith("-") else [one]
    return words
