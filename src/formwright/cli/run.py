"""`formwright run`: run any pipeline from a file, or the one that another command composed."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from formwright.cli.options import OUTPUT, RUNNING, STOP, AsJson, DryRun, Force, Observe, SetOption, argument, flag
from formwright.cli.output import echo, print_json, print_table
from formwright.cli.program import command_line
from formwright.cli.run_view import Terminal, print_result, resumable
from formwright.core.errors import IllegalInput

if TYPE_CHECKING:
    from formwright.pipeline.forecast import RunPlan, StageForecast
    from formwright.pipeline.pipeline import Pipeline


def run(
    file: Annotated[Path, argument("A pipeline: its stages, or a recipe and options.", "FILE.yaml")],
    out: Annotated[Path | None, flag("Folder of the run (default: runs/FILE).", OUTPUT)] = None,
    settings: SetOption = None,
    workers: Annotated[int, flag("Worker processes.", RUNNING, min=1, max=1000)] = 2,
    hours: Annotated[float | None, flag("Plan the stages to take about N hours.", STOP, min=0.001)] = None,
    storage: Annotated[str | None, flag("Keep the log in this database.", RUNNING)] = None,
    observers: Observe = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run the pipeline of a YAML or JSON file; the same command resumes it where it stopped."""
    from formwright.compose import with_settings
    from formwright.pipeline.files import read_pipeline_file

    pipeline = with_settings(read_pipeline_file(file), settings_of(settings))
    conduct = {"workers": workers, "hours": hours, "storage": storage, "observers": observers, "force": force}
    run_and_print(pipeline, out or Path("runs") / file.stem, as_json=as_json, dry_run=dry_run, **conduct)


def settings_of(texts: Sequence[str] | None) -> list[tuple[list[str], Any]]:
    """Read the options that `--set` gives: their paths and values."""
    from formwright.core.options import read_set
    from formwright.pipeline.files import value_of

    return [read_set(text, value_of) for text in texts or []]


def compose_and_run(compose: "Callable[..., Pipeline]", flags: dict[str, Any], out: Path) -> None:
    """Compose a pipeline from all flags of a command by their names, run it in `flags["out"]` or `out`, and print it.

    The names are those of `compose` and of `formwright.api.run`.
    """
    from formwright.compose import split_options

    as_json, dry_run, chosen = (flags.pop(name) for name in ("as_json", "dry_run", "out"))
    conduct, source, said = split_options(flags)
    said |= {name: value for name, value in source.items() if value}  # a flag that was not given is False or empty
    pipeline = compose(**said | {"settings": settings_of(said["settings"])})
    run_and_print(pipeline, chosen or out, as_json=as_json, dry_run=dry_run, **conduct)


def run_and_print(pipeline: "Pipeline", out: Path, *, as_json: bool, dry_run: bool, **conduct: Any) -> None:
    """Run a pipeline on the terminal and print its result, or only the plan.

    `conduct` says how, by the arguments of `formwright.api.run`.
    """
    from formwright import api
    from formwright.pipeline.run_folder import FolderTaken

    observers = conduct.pop("observers", ())
    try:
        if dry_run:
            _print_plan(api.plan(pipeline, out, display=Terminal(), **conduct), out, as_json)
            return
        with resumable(out):
            conduct |= {"display": Terminal(), "command": command_line(sys.argv[1:])}
            result = api.run(pipeline, out, observers=observers, **conduct)
    except FolderTaken as error:
        raise IllegalInput(f"{error}. The options are --out FOLDER and --force") from None
    print_result(result, as_json)


def _print_plan(plan: "RunPlan", out: Path, as_json: bool) -> None:
    stages, recipe = plan.stages, plan.pipeline["recipe"]
    if as_json:
        print_json({"out": str(out), "pipeline": plan.pipeline, "stages": [asdict(one) for one in stages]})
        return
    echo(f"{out}: {len(stages)} stages" + (f" of the recipe {recipe}" if recipe else ""))
    rows = [(one.stage, one.what, ", ".join(one.reads), *_numbers([one])) for one in stages]
    print_table(["stage", "what it does", "reads", ">time", ">disk"], [*rows, ("in all", "", "", *_numbers(stages))])
    for one in stages:
        for name, (least, most) in one.expected.costs.items():
            echo(f"{one.stage}: without limits, designs drawn at random have {name} from {least:,.0f} to {most:,.0f}")
    if any(one.expected.seconds is None for one in stages):
        echo("A time or size that is left out is not known before the run.")


def _numbers(stages: "Sequence[StageForecast]") -> tuple[str, str]:
    """Write the time and the disk that stages take, as far as they are known."""
    from formwright.core.text import clock

    seconds = [one.expected.seconds for one in stages if one.expected.seconds is not None]
    disk = [one.expected.disk for one in stages if one.expected.disk is not None]
    more = "> " if 0 < len(disk) < len(stages) else ""
    return (f"about {clock(sum(seconds))}" if seconds else "", f"{more}{sum(disk) / 1e6:,.1f} MB" if disk else "")
