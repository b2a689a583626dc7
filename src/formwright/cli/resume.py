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
    steps: SpendSteps = None,
    patience: Patience = None,
    failures: Annotated[int | None, flag(_FAILURES, STOP, "--max-failures", min=0)] = None,
    workers: Annotated[int | None, flag(_WORKERS, RUNNING, min=1, max=1000)] = None,
    ray: Annotated[str | None, flag(_RAY, RUNNING)] = None,
    ray_cpus: RayCpus = None,
    ray_gpus: RayGpus = None,
    device: Annotated[str, flag(_DEVICE, RUNNING)] = "",
    baseline: Annotated[bool | None, flag(_BASELINE, DELIVERY, "--baseline/--no-baseline")] = None,
    folder: Annotated[Path | None, flag("Folder for weights, where the study is named by a URL.", OUTPUT)] = None,
    trust_space_file: TrustSpaceFile = False,
    observers: Observe = None,
    as_json: AsJson = False,
) -> None:
    """Resume a run where it stopped; a finished search is extended by a new limit.

    A limit given here replaces the one that ended the search; its other limits stay as they are. Workers, Ray,
    device and baseline are as in the last run unless given here.
    """
    flags = dict(locals())
    from formwright import api

    del flags["as_json"], flags["trust_space_file"]
    with resumable(source, *(["--folder", folder] if folder is not None else [])):
        confirm, command = partial(confirm_space, trusted=trust_space_file), command_line(sys.argv[1:])
        result = api.resume(**flags, display=Terminal(), command=command, confirm=confirm)
    print_result(result, as_json)
