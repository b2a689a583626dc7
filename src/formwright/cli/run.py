"""`formwright run`: run any pipeline from a file."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.options import AsJson, DryRun, Force, Observe, SetOption
from formwright.cli.program import command_line
from formwright.cli.run_view import Terminal, print_result, resumable

if TYPE_CHECKING:
    from formwright.pipeline.pipeline import Pipeline
    from formwright.pipeline.run import RunOptions


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="A pipeline: its stages, or a recipe and options.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run (default: runs/FILE).", rich_help_panel=panels.OUTPUT)
    ] = None,
    settings: SetOption = None,
    workers: Annotated[
        int, typer.Option(min=1, max=1000, help="Worker processes.", rich_help_panel=panels.RUNNING)
    ] = 2,
    hours: Annotated[
        float | None,
        typer.Option(min=0.001, help="Plan the stages to take about N hours.", rich_help_panel=panels.STOP),
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="Keep the log in this database.", rich_help_panel=panels.RUNNING)
    ] = None,
    observe: Observe = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run the pipeline of a YAML or JSON file; the same command resumes it where it stopped."""
    from formwright.pipeline.files import read_pipeline_file
    from formwright.pipeline.run import RunOptions

    pipeline = with_settings(read_pipeline_file(file), {}, settings)
    where = out or Path("runs") / file.stem
    options = RunOptions(workers=workers, hours=hours)
    run_and_print(pipeline, where, options, storage, observe=observe, as_json=as_json, dry_run=dry_run, force=force)


def with_settings(pipeline: "Pipeline", given: Mapping[str, Any], settings: Sequence[str] | None) -> "Pipeline":
    """Set the options that flags give, which are those that are not None, and then those of `--set`."""
    from formwright.core.options import read_set
    from formwright.pipeline.files import value_of
    from formwright.pipeline.search import with_settings as set_options

    flags = [(path.split("."), value) for path, value in given.items() if value is not None]
    return set_options(pipeline, [*flags, *(read_set(text, value_of) for text in settings or [])])


def run_and_print(
    pipeline: "Pipeline",
    out: Path,
    options: "RunOptions",
    storage: str | None = None,
    *,
    observe: Sequence[str] | None = None,
    as_json: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Run a pipeline on the terminal and print what it came to, or only what it would do."""
    from formwright import api
    from formwright.cli.plan_view import print_plan

    if dry_run:
        print_plan(pipeline, out, options, as_json)
        return
    command = command_line(sys.argv[1:])
    with resumable(out):
        result = api.run(
            pipeline,
            out,
            options=options,
            display=Terminal(),
            observers=observe or (),
            storage=storage,
            force=force,
            command=command,
        )
    print_result(result, as_json)
