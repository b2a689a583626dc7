"""`formwright resume`: go on with a study, or extend it."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from formwright.cli.program import command_line


def resume(
    source: Annotated[str, typer.Argument(metavar="DIR_OR_URL", help="The folder of a study, or DATABASE_URL#NAME.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Stop after so many designs in all.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Stop after so many seconds in all.")] = None,
    spend_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many training steps in all.")] = None,
    patience: Annotated[int | None, typer.Option(min=1, help="Stop after so many trials without a better one.")] = None,
    max_failures: Annotated[
        int | None, typer.Option(min=0, help="Stop when more trials than this have failed from now on.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=1000, help="Processes on this machine, one thread each.")] = 2,
    ray: Annotated[
        str | None, typer.Option(help="Run the workers on this Ray cluster; without an address, one is started.")
    ] = None,
    ray_cpus: Annotated[float, typer.Option(min=0, help="Processors that each worker on Ray takes.")] = 1.0,
    ray_gpus: Annotated[float, typer.Option(min=0, help="Graphics processors that each worker on Ray takes.")] = 0.0,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Also train a plain design of no smaller size.")
    ] = True,
    folder: Annotated[Path | None, typer.Option(help="Folder for weights, where the study is named by a URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Go on with a study where it stopped; one that is over is extended by saying when to stop now.

    What is said replaces the limit that ended the study; other limits hold as before.
    """
    from formwright.cli.study_run import Wishes, conduct
    from formwright.compress.resumed import alone_if_compressed
    from formwright.study.extend import extended, noted
    from formwright.study.place import find

    place = find(source, folder)
    notes: dict[str, Any] = {}
    with alone_if_compressed(place):
        with place.open() as opened:
            limits = {"trials": trials, "seconds": seconds, "steps": spend_steps, "patience": patience}
            stop = extended(opened, limits | {"failures": max_failures})
            if stop != opened.config.stop:
                notes = noted(stop)
        command = command_line(sys.argv[1:]) if notes else ""  # else it only goes on as the first one said
        conduct(place, Wishes(workers, ray, ray_cpus, ray_gpus, baseline, as_json, command, notes))
