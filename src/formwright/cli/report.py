"""`formwright report`: the page of a run."""

from pathlib import Path
from typing import Annotated

import typer

from formwright.cli.options import StudySource
from formwright.cli.output import echo, print_json
from formwright.core.errors import IllegalInput


def report(
    source: StudySource,
    out: Annotated[Path | None, typer.Option(help="The file to write (report.html in the study's folder).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write the page of a run, also while it works: one HTML file that opens without a server or network."""
    from formwright.cli.show_run import run_without_study
    from formwright.pipeline.run_folder import REPORT, find, resume_line
    from formwright.report.run_page import write_run_page, write_study_page

    run = run_without_study(source)
    if run is not None:
        path = out or run.out / REPORT
        write_run_page(run, path)
        if not path.is_file():
            raise IllegalInput(f"there is nothing to show of {source} yet; {resume_line(run.out)}")
    else:
        place = find(source)
        path = out or place.folder / REPORT
        with place.open() as opened:
            write_study_page(opened, path)
    if as_json:
        print_json({"report": str(path)})
    else:
        echo(f"wrote {path}")
