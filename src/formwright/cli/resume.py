"""`formwright resume`: resume a study, or extend it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.options import AsJson, Patience, SpendSteps, StudySource
from formwright.cli.program import command_line
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
    as_json: AsJson = False,
) -> None:
    """Resume a study where it stopped; a finished one is extended by a new limit.

    A limit given here replaces the one that ended the study; its other limits stay as they are. Workers, Ray,
    device and baseline are as in the last run unless given here.
    """
    from formwright.cli.study_run import Wishes, conduct
    from formwright.compress.resumed import alone_if_compressed, refuse_untrained
    from formwright.study.extend import extended, noted
    from formwright.study.place import find
    from formwright.study.run_record import last_options
    from formwright.train.device import choose_device, device_name

    refuse_untrained(Path(source))  # of which there is no study to be found
    place = find(source, folder, update=True)
    notes: dict[str, Any] = {}
    with alone_if_compressed(place):
        with place.open(update=True) as opened:
            confirm_space(opened, trust_space_file)
            limits = {"trials": trials, "seconds": seconds, "steps": spend_steps, "patience": patience}
            stop = extended(opened, limits | {"failures": max_failures})
            if stop != opened.config.stop:
                notes = noted(stop)
            run = last_options(opened.log).changed(
                workers=workers, ray=ray, ray_cpus=ray_cpus, ray_gpus=ray_gpus, baseline=baseline
            )
            kept = opened.config.training.device
        run = replace(run, ray=None) if run.ray == "none" else run
        if not run.ray:  # of a cluster, each worker has a device of its own
            device = choose_device(device or kept).type if device or kept != "auto" else ""
        if device and device_name(device) != kept:
            notes["device"] = device
        command = command_line(sys.argv[1:]) if notes else ""  # else it only resumes what the first one said
        conduct(place, Wishes(run, as_json, command, notes))
