"""`formwright resume`: resume a study, or extend it."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from formwright.cli import panels
from formwright.cli.options import AsJson, Observe, Patience, SpendSteps, StudySource
from formwright.cli.program import command_line
from formwright.cli.run_view import Terminal, print_result, resumable
from formwright.cli.trust import TrustSpaceFile, confirm_space


def resume(
    source: StudySource,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of trials in all.", rich_help_panel=panels.STOP)
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Maximum number of seconds in all.", rich_help_panel=panels.STOP)
    ] = None,
    spend_steps: SpendSteps = None,
    patience: Patience = None,
    max_failures: Annotated[
        int | None,
        typer.Option(min=0, help="Stop when more than N trials have failed from now on.", rich_help_panel=panels.STOP),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Worker processes, one thread each (default: as in the last run).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Run the workers on the Ray cluster at this address; without an address, start one here; `none` for "
            "processes on this machine (default: as in the last run).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = None,
    ray_cpus: Annotated[
        float | None, typer.Option(min=0, help="CPUs reserved for each worker on Ray.", rich_help_panel=panels.RUNNING)
    ] = None,
    ray_gpus: Annotated[
        float | None, typer.Option(min=0, help="GPUs reserved for each worker on Ray.", rich_help_panel=panels.RUNNING)
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="Where models are trained, evaluated and measured: cpu, cuda, mps or auto (default: as in the last "
            "run).",
            rich_help_panel=panels.RUNNING,
        ),
    ] = "",
    baseline: Annotated[
        bool | None,
        typer.Option(
            "--baseline/--no-baseline",
            help="Also train a plain baseline design of at least the same size (default: as in the last run).",
            rich_help_panel=panels.DELIVERY,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for weights, where the study is named by a URL.", rich_help_panel=panels.OUTPUT),
    ] = None,
    trust_space_file: TrustSpaceFile = False,
    observe: Observe = None,
    as_json: AsJson = False,
) -> None:
    """Resume a study where it stopped; a finished one is extended by a new limit.

    A limit given here replaces the one that ended the study; its other limits stay as they are. Workers, Ray,
    device and baseline are as in the last run unless given here.
    """
    from formwright import api

    with resumable(source, *(["--folder", folder] if folder is not None else [])):
        result = api.resume(
            source,
            trials=trials,
            seconds=seconds,
            steps=spend_steps,
            patience=patience,
            failures=max_failures,
            device=device,
            baseline=baseline,
            folder=folder,
            display=Terminal(),
            observers=observe or (),
            command=command_line(sys.argv[1:]),
            confirm=partial(confirm_space, trusted=trust_space_file),
            workers=workers,
            ray=ray,
            ray_cpus=ray_cpus,
            ray_gpus=ray_gpus,
        )
    print_result(result, as_json)
