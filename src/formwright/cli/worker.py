"""`formwright worker`: attach one more worker to a study, from this machine or another."""

import sys
from pathlib import Path
from typing import Annotated

from formwright.cli.options import RunSource, TrustSpaceFile, flag
from formwright.cli.output import echo, note
from formwright.cli.run_view import confirm_space


def worker(
    source: RunSource,
    folder: Annotated[Path | None, flag("Folder for weights, where the study is named by a URL.", None)] = None,
    trust_space_file: TrustSpaceFile = False,
) -> None:
    """Work on a study in this process until it is over; Ctrl-C leaves the trial to others."""
    from formwright.pipeline.run_events import work_here
    from formwright.pipeline.study_place import find
    from formwright.study.processes import STOPPED

    place = find(source, folder, wait=True)
    with place.open(wait=True) as opened:
        confirm_space(opened, trust_space_file)
        opened.make_folder()
    note(f"working on {place.name}")
    code = work_here(place)
    if code == STOPPED:
        raise KeyboardInterrupt
    if code:
        sys.exit(2)
    echo(f"{place.name} is finished")
