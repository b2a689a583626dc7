"""Options that several commands share: each is declared once, with its help and its topic."""

from pathlib import Path
from typing import Annotated

import typer

from formwright.cli import panels

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object.", rich_help_panel=panels.OUTPUT)
]
CardOrFolder = Annotated[
    str, typer.Argument(metavar="CARD_OR_FOLDER", help="A published card, a card's JSON file, or a model's folder.")
]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the files of a task that is not built in.", rich_help_panel=panels.DATA)
]
Device = Annotated[str, typer.Option(help="Where models run: auto, cpu, cuda or mps.", rich_help_panel=panels.RUNNING)]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print stages, time, costs and disk; do nothing.", rich_help_panel=panels.RUNNING),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing run.", rich_help_panel=panels.OUTPUT)]
ModelFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a delivered or exported model.")]
Observe = Annotated[
    list[str] | None,
    typer.Option(
        "--observe",
        metavar="NAME[:OPTION=VALUE,...]",
        help="Also report to tensorboard, mlflow or wandb (`formwright list observers`); may be repeated.",
        rich_help_panel=panels.OUTPUT,
    ),
]
OfficialDev = Annotated[
    bool,
    typer.Option(
        "--official-dev",
        help="Validate on the whole official dev set; no test rows are kept.",
        rich_help_panel=panels.DATA,
    ),
]
Patience = Annotated[
    int | None, typer.Option(min=1, help="Stop after N trials without an improvement.", rich_help_panel=panels.STOP)
]
Rows = Annotated[int | None, typer.Option(min=1, help="Train on the first N rows only.", rich_help_panel=panels.DATA)]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PART.OPTION=VALUE",
        help="Set any option of a part, such as searcher.population=40; may be repeated (`formwright list`).",
        rich_help_panel=panels.SEARCH,
    ),
]
SpendSteps = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of training steps of all trials together.", rich_help_panel=panels.STOP),
]
StudySource = Annotated[str, typer.Argument(metavar="DIR_OR_URL", help="The folder of a study, or DATABASE_URL#NAME.")]
Task = Annotated[
    str, typer.Option(help="A task (`formwright list tasks`), or a CSV, TSV or JSON file.", rich_help_panel=panels.DATA)
]
Text = Annotated[
    str, typer.Option(help="Text columns of your own file, separated by commas.", rich_help_panel=panels.DATA)
]
