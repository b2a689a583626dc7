"""`formwright resume`: go on with a study, or extend it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer


def resume(
    source: Annotated[str, typer.Argument(metavar="DIR_OR_URL", help="The folder of a study, or DATABASE_URL#NAME.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Stop after so many designs in all, instead.")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Stop after so many seconds in all, instead.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine, one thread each.")] = 2,
    ray: Annotated[str | None, typer.Option(help="Run the workers on this Ray cluster; `local` starts one.")] = None,
    ray_cpus: Annotated[float, typer.Option(min=0, help="Processors that each worker on Ray takes.")] = 1.0,
    ray_gpus: Annotated[float, typer.Option(min=0, help="Graphics processors that each worker on Ray takes.")] = 0.0,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Also train a plain design of no smaller size.")
    ] = True,
    folder: Annotated[Path | None, typer.Option(help="Folder for weights, where the study is named by a URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Go on with a study where it stopped; a finished one is extended with --trials or --seconds."""
    from formwright.cli.study_run import Wishes, conduct
    from formwright.study.place import find

    place = find(source, folder)
    notes: dict[str, Any] = {}
    with place.open() as opened:
        stop = opened.config.stop
        new = replace(stop, trials=trials or stop.trials, seconds=seconds or stop.seconds)
        if new != stop:
            notes["stop"] = {"trials": new.trials, "seconds": new.seconds}
    conduct(place, Wishes(workers, ray, ray_cpus, ray_gpus, baseline=baseline, as_json=as_json, notes=notes))
