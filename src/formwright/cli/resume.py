"""`formwright resume`: resume any run, or extend a search."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from formwright.cli.options import (
    DELIVERY,
    OUTPUT,
    RUNNING,
    STOP,
    AsJson,
    Observe,
    Patience,
    RayCpus,
    RayGpus,
    RunSource,
    SpendSteps,
    TrustSpaceFile,
    flag,
)
from formwright.cli.program import command_line
from formwright.cli.run_view import Terminal, confirm_space, print_result, resumable

_FAILURES = "Stop when more than N trials have failed from now on."
_WORKERS = "Worker processes, one thread each (default: as in the last run)."
_RAY = (
    "Run the workers on the Ray cluster at this address; without an address, start one here; `none` for processes on "
    "this machine (default: as in the last run)."
)
_DEVICE = "Where models are trained, evaluated and measured: cpu, cuda, mps or auto (default: as in the last run)."
_BASELINE = "Also train a plain baseline design of at least the same size (default: as in the last run)."


def resume(
    source: RunSource,
    trials: Annotated[int | None, flag("Maximum number of trials in all.", STOP, min=1)] = None,
    seconds: Annotated[float | None, flag("Maximum number of seconds in all.", STOP, min=0.001)] = None,
    spend_steps: SpendSteps = None,
    patience: Patience = None,
    max_failures: Annotated[int | None, flag(_FAILURES, STOP, min=0)] = None,
    workers: Annotated[int | None, flag(_WORKERS, RUNNING, min=1, max=1000)] = None,
    ray: Annotated[str | None, flag(_RAY, RUNNING)] = None,
    ray_cpus: RayCpus = None,
    ray_gpus: RayGpus = None,
    device: Annotated[str, flag(_DEVICE, RUNNING)] = "",
    baseline: Annotated[bool | None, flag(_BASELINE, DELIVERY, "--baseline/--no-baseline")] = None,
    folder: Annotated[Path | None, flag("Folder for weights, where the study is named by a URL.", OUTPUT)] = None,
    trust_space_file: TrustSpaceFile = False,
    observe: Observe = None,
    as_json: AsJson = False,
) -> None:
    """Resume a run where it stopped; a finished search is extended by a new limit.

    A limit given here replaces the one that ended the search; its other limits stay as they are. Workers, Ray,
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
